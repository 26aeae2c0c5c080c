import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/**
 * Makes requests valid whose `:authority` is the path of a socket (`/var/lib/kubelet/…`), as kubelets before 1.26 send
 * it: HTTP/2 forbids slashes there, and Node refuses the request. Slashes of the path become dashes, which have as many
 * bits in the compression of headers, so that no other byte moves.
 * @param paths Possible paths of the socket: kubelet's folder may be mounted under another name here.
 * @see https://github.com/kubernetes/kubernetes/pull/112597, RFC 7541 appendix B, RFC 9113 section 8.3.1
 */
export function rewriteAuthority(connection: Socket, paths: readonly string[]): Duplex {
  const replace = replacerOf(paths);
  const rewritten = new Duplex({
    read: () => connection.resume(),
    write: (chunk, encoding, done) => connection.write(chunk, encoding, done),
    final: (done) => connection.end(done),
    destroy: (error, done) => {
      connection.destroy();
      done(error);
    },
  });
  connection.on('data', (chunk: Buffer) => {
    if (!rewritten.push(replace(chunk))) connection.pause();
  });
  connection.on('end', () => rewritten.push(null));
  connection.on('error', (error) => rewritten.destroy(error));
  connection.on('close', () => rewritten.destroy());
  // Who gets it listens as well, from later on.
  rewritten.on('error', () => {});
  return rewritten;
}

/** Returns a function that replaces each path, plain or compressed, by a form without slashes of the same length. */
export function replacerOf(paths: readonly string[]): (chunk: Buffer) => Buffer {
  const pairs = [...new Set(paths)].flatMap((path) => {
    const rewritten = path.replaceAll('/', '-');
    const [packed, packedRewritten] = [pack(path), pack(rewritten)];
    const plain = [Buffer.from(path), Buffer.from(rewritten)] as const;
    return packed === undefined || packedRewritten === undefined
      ? [plain]
      : [plain, [packed, packedRewritten] as const];
  });
  return (chunk) => {
    let copy: Buffer | undefined;
    for (const [from, to] of pairs) {
      for (let at = chunk.indexOf(from); at >= 0; at = chunk.indexOf(from, at + from.length)) {
        copy ??= Buffer.from(chunk);
        to.copy(copy, at);
      }
    }
    return copy ?? chunk;
  };
}

/** Printable characters by the length of their Huffman code in bits, each group in the order of its codes. */
const CODES = [
  { bits: 5, first: 0x0, characters: '012aceiost' },
  { bits: 6, first: 0x14, characters: ' %-./3456789=A_bdfghlmnpru' },
  { bits: 7, first: 0x5c, characters: ':BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz' },
  { bits: 8, first: 0xf8, characters: '&*,;XZ' },
] as const;

/** Compresses a text with the Huffman code of headers; undefined when one of its characters has a longer code. */
function pack(text: string): Buffer | undefined {
  let bits = '';
  for (const character of text) {
    const group = CODES.find(({ characters }) => characters.includes(character));
    if (group === undefined) return undefined;
    const code = group.first + group.characters.indexOf(character);
    bits += code.toString(2).padStart(group.bits, '0');
  }
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  return Buffer.from(padded.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}
