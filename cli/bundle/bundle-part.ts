/** What one part of the archive has to say. */
export type PartContent =
  | { readonly kind: 'text'; readonly text: string }
  /** Becomes JSON; secrets are looked for by the names in it as well. */
  | { readonly kind: 'value'; readonly value: unknown }
  /** Is bounded already, and has no secrets any more. */
  | { readonly kind: 'safe'; readonly text: string }
  /** Not there, and that says something too. */
  | { readonly kind: 'missing'; readonly why: string };

/** One file of the archive, still to be made. */
export type BundlePart = {
  /** Path in the archive. */
  readonly path: string;
  /** Rejects: the archive says why instead. Stops at `signal`, which also ends a part that takes too long. */
  collect(signal: AbortSignal): Promise<PartContent>;
};

/** A text as part. */
export function textPart(text: string): PartContent {
  return { kind: 'text', text };
}

/** A value as part. */
export function valuePart(value: unknown): PartContent {
  return { kind: 'value', value };
}

/** Longer than any dump of 5,000 routes; what is longer keeps its beginning and end. */
export const PART_BYTES = 16 << 20;

/** Of a text that is too long keeps the first and the last half, at whole lines, and says what is missing. Pure. */
export function boundText(text: string, bytes = PART_BYTES): string {
  if (text.length <= bytes) return text;
  const half = Math.floor(bytes / 2);
  const head = text.slice(0, text.lastIndexOf('\n', half) + 1 || half);
  const from = text.indexOf('\n', text.length - half) + 1 || text.length - half;
  return `${head}[… ${from - head.length} characters left out …]\n${text.slice(from)}`;
}
