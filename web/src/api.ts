// Asking the server. A channel asks one thing at a time and always the latest: while an answer
// is on its way, newer questions replace one another and only the last is asked.

import type { Schema } from "./names.ts";

export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const REFUSAL: Schema = "dosimeter.error/1";

/** Refusals come as answers: a browser takes any other status for a failure of the page. */
const SOFTLY = "status=200";

async function answer<T>(response: Response): Promise<T> {
  const document = await response.json().catch(() => null);
  if (!response.ok || document?.schema === REFUSAL) {
    throw new Refusal(response.status, document?.error ?? `the server answered ${response.status}`);
  }
  return document as T;
}

export async function post<T>(path: string, question: unknown, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", prefer: SOFTLY },
    body: JSON.stringify(question),
    signal,
  });
  return answer<T>(response);
}

export async function get<T>(path: string): Promise<T> {
  return answer<T>(await fetch(path));
}

export async function upload<T>(path: string, question: unknown, file: Blob, kind: string): Promise<T> {
  const address = `${path}?question=${encodeURIComponent(JSON.stringify(question))}`;
  return answer<T>(await fetch(address, { method: "POST", headers: { "content-type": kind, prefer: SOFTLY }, body: file }));
}

/** An answer under way for longer than this is given up when a newer question comes. */
const PATIENCE = 1500;

export interface Meter {
  /** Answers of the last second. */
  rate: number;
  /** Milliseconds of the last answer. */
  latest: number;
}

const arrivals: number[] = [];
let lastTime = 0;

/** How fast the core answers. */
export function meter(): Meter {
  const now = performance.now();
  while (arrivals.length > 0 && now - arrivals[0]! > 1000) arrivals.shift();
  return { rate: arrivals.length, latest: lastTime };
}

export class Latest<T> {
  private pending: (() => Promise<void>) | null = null;
  private begun = 0;
  private abort: AbortController | null = null;
  private readonly path: string;
  private readonly onAnswer: (answer: T, question: unknown) => void;
  private readonly onRefusal: (error: Error) => void;
  private readonly counted: boolean;

  constructor(path: string, onAnswer: (answer: T, question: unknown) => void, onRefusal: (error: Error) => void, counted = false) {
    this.counted = counted;
    this.path = path;
    this.onAnswer = onAnswer;
    this.onRefusal = onRefusal;
  }

  ask(question: unknown): void {
    this.pending = async () => {
      const abort = new AbortController();
      this.abort = abort;
      this.begun = performance.now();
      try {
        const found = await post<T>(this.path, question, abort.signal);
        if (this.counted) {
          lastTime = performance.now() - this.begun;
          arrivals.push(performance.now());
        }
        this.onAnswer(found, question);
      } catch (error) {
        if (!abort.signal.aborted) this.onRefusal(error as Error);
      }
    };
    if (this.abort === null) void this.drain();
    else if (performance.now() - this.begun > PATIENCE) this.abort.abort();
  }

  /** Forgets what is waiting and gives up what is under way. */
  cancel(): void {
    this.pending = null;
    this.abort?.abort();
  }

  private async drain(): Promise<void> {
    while (this.pending !== null) {
      const next = this.pending;
      this.pending = null;
      await next();
    }
    this.abort = null;
  }
}
