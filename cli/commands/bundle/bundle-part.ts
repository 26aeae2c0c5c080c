/** Content of one part of the archive. */
export type PartContent =
  | { readonly kind: 'text'; readonly text: string }
  /** Is written as JSON. Secrets are searched by its property names as well. */
  | { readonly kind: 'value'; readonly value: unknown }
  /** Is bounded in size already, and secrets are removed already. */
  | { readonly kind: 'safe'; readonly text: string }
  /** The part could not be collected; `why` is written into the archive instead. */
  | { readonly kind: 'missing'; readonly why: string }
  /** This machine does not have what the part is about, which is no fault; `why` is written into the archive instead. */
  | { readonly kind: 'skipped'; readonly why: string };

/** One file of the archive, which `collect` produces. */
export type BundlePart = {
  /** Path in the archive. */
  readonly path: string;
  /**
   * Produces the content. Where it rejects, the archive contains the error instead. It stops when `signal` aborts, also
   * after a time limit.
   */
  collect(signal: AbortSignal): Promise<PartContent>;
};

/** Returns a part with this text. */
export function textPart(text: string): PartContent {
  return { kind: 'text', text };
}

/** Returns a part with this value. */
export function valuePart(value: unknown): PartContent {
  return { kind: 'value', value };
}

/**
 * Size limit of a part, bytes; larger than any dump of 5,000 routes. Of a longer text the beginning and the end are
 * kept.
 */
export const PART_BYTES = 16 << 20;

/**
 * Shortens a text that is too long to its first and last half, at whole lines, and inserts how many characters are left
 * out.
 */
export function boundText(text: string, bytes = PART_BYTES): string {
  if (text.length <= bytes) return text;
  const half = Math.floor(bytes / 2);
  const head = text.slice(0, text.lastIndexOf('\n', half) + 1 || half);
  const from = text.indexOf('\n', text.length - half) + 1 || text.length - half;
  return `${head}[… ${from - head.length} characters left out …]\n${text.slice(from)}`;
}
