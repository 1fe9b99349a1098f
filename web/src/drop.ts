// Files dropped anywhere on the page: a run or a ledger sets the controls, scores are audited.

import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal, post } from "./api.ts";
import { SIGNED } from "./names.ts";
import { fromDocument, type Run } from "./state.ts";
import type { Account } from "./types.ts";

/** Whether files are held over the page; `take` gets them when they are dropped. */
export function useDrop(take: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const holds = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const drag = (event: DragEvent) => {
      if (!holds(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      // A part of the page that takes files itself has done so.
      if (event.defaultPrevented || !holds(event)) return;
      event.preventDefault();
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", drag);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return over;
}

/** The run of a file, read by the core; or why there is none. */
export async function runOf(file: File): Promise<Run | string> {
  try {
    const files = [{ name: file.name, text: await file.text() }];
    const answer = await post<Account>("/api/account", { files, lens: [SIGNED], quantity: ["advantage"] });
    return fromDocument(answer.run);
  } catch (error) {
    return error instanceof Refusal ? error.message : "The server does not answer.";
  }
}
