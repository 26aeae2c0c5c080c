import { ConfigError } from './decode.ts';

/** Largest body of a request to one of our HTTPS servers, unless a flag says otherwise: 1 MiB. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Memory budget for the request bodies of a server: for one body, and for all bodies that are being read. In bytes. */
export class BodyBudget {
  readonly maxBody: number;
  readonly #maxTotal: number;
  #used = 0;

  constructor(maxBody: number, maxTotal: number) {
    this.maxBody = maxBody;
    this.#maxTotal = maxTotal;
  }

  /** Acquires `bytes` of the budget; returns false when too few are left. */
  acquire(bytes: number): boolean {
    if (this.#used + bytes > this.#maxTotal) return false;
    this.#used += bytes;
    return true;
  }

  /** Releases bytes that were acquired. */
  release(bytes: number): void {
    this.#used -= bytes;
  }
}

/** Memory for request bodies, in bodies of the largest size. Small bodies count with their real size. */
export const MAX_LARGE_BODIES = 4;

const MIB = 1024 * 1024;
/** What a server takes without any body. */
const BASE_BYTES = 128 * MIB;
/** Most bytes for each byte of a body that is being decoded: `[[[…` takes 28 as a value, and 3 as bytes and text. */
const DECODED_BYTES = 32;

/**
 * Checks that the largest bodies fit into the memory limit: four of them being read, and one being decoded.
 * @param memoryLimit bytes; 0 or more than the machine has when there is none (`process.constrainedMemory`)
 * @throws ConfigError that names `setting`, in MiB
 */
export function checkBodyLimit(setting: string, maxBody: number, memoryLimit: number): void {
  const required = BASE_BYTES + maxBody * (MAX_LARGE_BODIES + DECODED_BYTES);
  if (memoryLimit === 0 || required <= memoryLimit) return;
  const fitting = Math.floor((memoryLimit - BASE_BYTES) / (MAX_LARGE_BODIES + DECODED_BYTES) / MIB);
  const most = fitting < 1 ? '' : `at most ${fitting} with a memory limit of ${Math.floor(memoryLimit / MIB)} MiB, or `;
  const expected = `${most}a memory limit of ${Math.ceil(required / MIB)} MiB`;
  throw new ConfigError('settings', [{ path: setting, expected, got: `${maxBody / MIB}` }]);
}
