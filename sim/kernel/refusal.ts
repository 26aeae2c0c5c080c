import type { constants } from 'node:os';

/** What the kernel answers a request that it refuses: an errno, and the text that it adds to it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: keyof typeof constants.errno;
  /** The kernel's own words, as extended acknowledgements have them. */
  readonly text: string | undefined;

  constructor(code: keyof typeof constants.errno, text?: string) {
    super(text ?? code);
    this.code = code;
    this.text = text;
  }
}

/** A request of a kind that the model does not have: an error of who asks for it, never an answer of the kernel. */
export function notModelled(what: string): Error {
  return new Error(`the model of the kernel has no ${what}`);
}
