// The same question elsewhere.

import { useState } from "preact/hooks";
import { FORMS, copyAs, toClipboard, type Form } from "../copy.ts";
import { toHash, type State } from "../state.ts";

export function CopyCard({ state }: { state: State }) {
  const [form, setForm] = useState<Form>("command");
  const [said, setSaid] = useState("");
  const text = form === "link" ? `${location.origin}${location.pathname}${toHash(state)}` : copyAs(form, state.run, state.delta);
  const copy = async () => {
    setSaid((await toClipboard(text)) ? "Copied" : "Select the text and copy it");
    setTimeout(() => setSaid(""), 2000);
  };
  return (
    <section class="card copy" aria-labelledby="copy-title">
      <h2 id="copy-title">Use it elsewhere</h2>
      <div class="segments" role="group" aria-label="Form">
        {FORMS.map((entry) => (
          <button type="button" key={entry.id} aria-pressed={form === entry.id} onClick={() => setForm(entry.id)}>
            {entry.name}
          </button>
        ))}
      </div>
      <pre id="copy-text" tabIndex={0} aria-label="Text to copy">{text}</pre>
      <div class="copy-row">
        <button type="button" id="copy" onClick={copy}>
          Copy
        </button>
        <span class="small quiet" role="status">
          {said}
        </span>
      </div>
    </section>
  );
}
