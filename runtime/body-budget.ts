import { originOf } from './connection-table.ts';
import { ConfigError } from './decode.ts';

/** Largest body of a request to one of our HTTPS servers, unless a flag says otherwise: 1 MiB. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** A request whose body is being read. */
type BodyInBudget = {
  /** Acquires so many bytes more; returns false when the body must be refused. */
  acquire(bytes: number): boolean;
  /** Releases all bytes of the body. Idempotent. */
  release(): void;
};

/** What a budget needs of a request: its sender, and how to give it up. */
type BodyRequest = { readonly socket: { readonly remoteAddress?: string | undefined }; destroy(): unknown };

/** A body that is being read. */
type Body = { readonly request: BodyRequest; readonly origin: string; bytes: number };

/**
 * Memory budget for the request bodies of a server: for one body, and for all bodies that are being read. In bytes. When it
 * is used up, bodies of the sender that has most are given up for one of a sender that has less; bodies of the same sender are
 * refused. So one sender of slow bodies does not keep the others out.
 */
export class BodyBudget {
  readonly maxBody: number;
  readonly #maxTotal: number;
  readonly #bodies = new Set<Body>();

  constructor(maxBody: number, maxTotal: number) {
    this.maxBody = maxBody;
    this.#maxTotal = maxTotal;
  }

  /** Begins to read the body of a request. */
  begin(request: BodyRequest): BodyInBudget {
    const body: Body = { request, origin: originOf(request.socket.remoteAddress ?? ''), bytes: 0 };
    this.#bodies.add(body);
    return {
      acquire: (bytes) => {
        while (this.#bytesOf(() => true) + bytes > this.#maxTotal) if (!this.#giveUpFor(body, bytes)) return false;
        body.bytes += bytes;
        return this.#bodies.has(body);
      },
      release: () => {
        this.#bodies.delete(body);
      },
    };
  }

  /** Gives up the first body of the sender that has most; returns false when that is no other sender. */
  #giveUpFor({ origin }: Body, bytes: number): boolean {
    const shareOf = (one: string): number => this.#bytesOf((body) => body.origin === one);
    let [largest, share] = [origin, shareOf(origin) + bytes];
    for (const other of new Set([...this.#bodies].map((body) => body.origin)))
      if (other !== origin && shareOf(other) > share) [largest, share] = [other, shareOf(other)];
    const given =
      largest === origin ? undefined : [...this.#bodies].find((body) => body.origin === largest && body.bytes > 0);
    if (given === undefined) return false;
    this.#bodies.delete(given);
    given.request.destroy();
    return true;
  }

  #bytesOf(counts: (body: Body) => boolean): number {
    let bytes = 0;
    for (const body of this.#bodies) if (counts(body)) bytes += body.bytes;
    return bytes;
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
