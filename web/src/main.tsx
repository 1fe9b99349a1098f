import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { meter, type Meter } from "./api.ts";
import { changed, fromHash, toHash, type Change, type State, type View } from "./state.ts";
import { runOf, useDrop } from "./drop.ts";
import { useUndo } from "./undo.ts";
import { AuditView } from "./views/audit.tsx";
import { ExperimentsView } from "./views/experiments.tsx";
import { PanelView } from "./views/panel.tsx";

const VIEWS: { id: View; name: string }[] = [
  { id: "panel", name: "Panel" },
  { id: "audit", name: "Audit" },
  { id: "experiments", name: "Experiments" },
];

function App() {
  const [state, setState] = useState<State>(() => fromHash(location.hash));

  useEffect(() => {
    const read = () => setState(fromHash(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);

  // The address follows; movements of a slider do not fill the history.
  useEffect(() => {
    const hash = toHash(state);
    if (location.hash === hash) return undefined;
    const write = setTimeout(() => history.replaceState(null, "", hash), 60);
    return () => clearTimeout(write);
  }, [state]);

  const { undo, can } = useUndo(state, setState);
  const [dropped, setDropped] = useState<File[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const over = useDrop(async (files) => {
    setProblem(null);
    const only = files.length === 1 ? files[0]! : null;
    if (only !== null && /\.(json|toml)$/i.test(only.name)) {
      const found = await runOf(only);
      if (typeof found === "string") setProblem(found);
      else setState((now) => ({ ...now, view: "panel", run: found }));
      return;
    }
    setDropped(files);
    setState((now) => ({ ...now, view: "audit" }));
  });

  const update = (change: Change<State>) => setState((now) => changed(now, change));
  const go = (view: View) => {
    history.pushState(null, "", toHash({ ...state, view }));
    update({ view });
  };
  return (
    <>
      <header class="bar">
        <a class="skip" href={toHash(state)}
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}>
        Skip to the content
      </a>
        <div class="brand">
          <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke-width="2.4" stroke-linecap="round">
            <path class="ring" d="M4.2 18a9.5 9.5 0 1 1 15.6 0" />
            <path class="arc" d="M4.2 18a9.5 9.5 0 0 1 5-14.6" />
            <path class="needle" d="M12 13.5 8.6 7.6" />
          </svg>
          <h1>Dosimeter</h1>
        </div>
        <nav aria-label="Pages">
          {VIEWS.map((view) => (
            <a key={view.id} href={toHash({ ...state, view: view.id })} aria-current={state.view === view.id ? "page" : undefined}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                go(view.id);
              }}>
              {view.name}
            </a>
          ))}
        </nav>
        <div class="tools">
          {state.view === "panel" && <Speed />}
          <button type="button" id="undo" disabled={!can} onClick={undo} title="Ctrl+Z">
            Undo
          </button>
          <button type="button" id="print" onClick={() => print()}>
            Print
          </button>
        </div>
      </header>
      <main id="content" tabIndex={-1} class={over ? "over" : ""}>
        {over && <p class="drop-here" aria-hidden="true">Drop a run, a ledger or scores</p>}
        {problem !== null && (
          <p class="card refusal" role="alert">
            {problem}
          </p>
        )}
        {state.view === "panel" && <PanelView state={state} update={update} />}
        {state.view === "audit" && <AuditView state={state} dropped={dropped} />}
        {state.view === "experiments" && <ExperimentsView state={state} update={update} />}
      </main>
    </>
  );
}

/** How fast the core answers, while it does. */
function Speed() {
  const [now, setNow] = useState<Meter>({ rate: 0, latest: 0 });
  useEffect(() => {
    const timer = setInterval(() => setNow(meter()), 250);
    return () => clearInterval(timer);
  }, []);
  return (
    <p class="speed" aria-hidden="true">
      {now.latest > 0 && (
        <>
          {now.rate > 0 && (
            <>
              <b>{now.rate}</b> answers/s <span class="dot">·</span>{" "}
            </>
          )}
          <b>{now.latest < 10 ? now.latest.toFixed(1) : now.latest.toFixed(0)}</b> ms
        </>
      )}
    </p>
  );
}

render(<App />, document.getElementById("app")!);
