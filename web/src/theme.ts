// Colours of drawings come from the style sheet, so that light and dark are decided in one place.

import { useEffect, useState } from "preact/hooks";

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
}

/** Changes when the person's scheme does. */
export function useScheme(): string {
  const query = "(prefers-color-scheme: dark)";
  const [dark, setDark] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const change = () => setDark(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, []);
  return dark ? "dark" : "light";
}
