// Steps back: what the page showed whenever it rested for a moment.

import { useEffect, useRef, useState } from "preact/hooks";
import { toHash, type State } from "./state.ts";

/** Milliseconds without a change after which the page is remembered. */
const REST = 350;
const MOST = 100;

export function useUndo(state: State, setState: (state: State) => void): { undo: () => void; can: boolean } {
  const past = useRef<State[]>([state]);
  const [, redraw] = useState(0);
  const now = toHash(state);
  const last = past.current.at(-1)!;

  useEffect(() => {
    if (toHash(past.current.at(-1)!) === now) return undefined;
    const rest = setTimeout(() => {
      past.current = [...past.current.slice(1 - MOST), state];
      redraw((count) => count + 1);
    }, REST);
    return () => clearTimeout(rest);
  }, [now]);

  const undo = () => {
    // A change that has not rested yet is taken back first.
    if (toHash(past.current.at(-1)!) === now && past.current.length > 1) past.current = past.current.slice(0, -1);
    setState(past.current.at(-1)!);
    redraw((count) => count + 1);
  };

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement && event.target.type !== "range";
      if (event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing) {
        event.preventDefault();
        undo();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  return { undo, can: past.current.length > 1 || toHash(last) !== now };
}
