import { formatIp, parseIp } from '../runtime/ip-text.ts';
import { CodecError } from './codec-error.ts';
import { headerBe16, headerU8, headerU32 } from './field.ts';
import { type Fields, type MessageCodec, type MessageOf, messageCodec } from './message-codec.ts';
import { AF_INET6 } from './uapi/netlink.ts';

/**
 * struct inet_diag_sockid at `at`: sport, dport, src, dst, if, cookie. Addresses are words here, and text below.
 */
function sockid(at: number) {
  return {
    sport: headerBe16(at),
    dport: headerBe16(at + 2),
    src0: headerU32(at + 4),
    src1: headerU32(at + 8),
    src2: headerU32(at + 12),
    src3: headerU32(at + 16),
    dst0: headerU32(at + 20),
    dst1: headerU32(at + 24),
    dst2: headerU32(at + 28),
    dst3: headerU32(at + 32),
    ifindex: headerU32(at + 36),
    cookie0: headerU32(at + 40),
    cookie1: headerU32(at + 44),
  } satisfies Fields;
}

/** struct inet_diag_req_v2 */
const REQUEST = messageCodec('inet-diag-req', 56, {
  family: headerU8(0),
  protocol: headerU8(1),
  ext: headerU8(2),
  states: headerU32(4),
  ...sockid(8),
});

/** struct inet_diag_msg */
const ANSWER = messageCodec('inet-diag', 72, {
  family: headerU8(0),
  /** TCP_ESTABLISHED and the like. */
  state: headerU8(1),
  timer: headerU8(2),
  retrans: headerU8(3),
  ...sockid(4),
  expires: headerU32(52),
  rqueue: headerU32(56),
  wqueue: headerU32(60),
  /** Of the process that made the socket, in the user namespace of the asker; 0 for a socket that no process has open. */
  uid: headerU32(64),
  /** 0 for a socket that no process has open. */
  inode: headerU32(68),
});

type Words = 'src0' | 'src1' | 'src2' | 'src3' | 'dst0' | 'dst1' | 'dst2' | 'dst3';

type Named<M> = Omit<M, Words> & {
  /** Address of the socket itself. */
  readonly src: string;
  /** Address of its peer. */
  readonly dst: string;
};

/** Request for sockets, or for one by its addresses and ports. @see sock_diag(7) */
type InetDiagRequest = Named<MessageOf<typeof REQUEST>>;

/** Socket, as the kernel reports it. @see sock_diag(7) */
export type InetDiagMessage = Named<MessageOf<typeof ANSWER>>;

/** Codec of requests. */
export const INET_DIAG_REQUEST: MessageCodec<InetDiagRequest> = withAddresses(REQUEST);

/** Codec of reported sockets. */
export const INET_DIAG: MessageCodec<InetDiagMessage> = withAddresses(ANSWER);

type Wire = Readonly<Record<Words | 'family', number>>;

/** Turns words into addresses. An address that is absent is the unspecified one. */
function withAddresses<W extends Wire>(wire: MessageCodec<W>): MessageCodec<Named<W>> {
  const named = (message: W): Named<W> => {
    const { src0, src1, src2, src3, dst0, dst1, dst2, dst3, ...rest } = message;
    return {
      ...rest,
      src: addressOf(message.family, [src0, src1, src2, src3]),
      dst: addressOf(message.family, [dst0, dst1, dst2, dst3]),
    };
  };
  return {
    ...wire,
    read: (view, start, end) => named(wire.read(view, start, end)),
    decode: (bytes) => named(wire.decode(bytes)),
    write: (writer, { src, dst, ...rest }) => {
      const [src0, src1, src2, src3] = wordsOf(src, `${wire.name}.src`);
      const [dst0, dst1, dst2, dst3] = wordsOf(dst, `${wire.name}.dst`);
      const words = { src0, src1, src2, src3, dst0, dst1, dst2, dst3 };
      wire.write(writer, { ...rest, ...words } as unknown as Partial<W>);
    },
  };
}

function addressOf(family: number, words: readonly number[]): string {
  return formatIp(new Uint8Array(Uint32Array.from(words).buffer), 0, family === AF_INET6 ? 16 : 4);
}

/** Returns the four words of an address; an IPv4 address has one. @throws CodecError */
function wordsOf(address: string | undefined, field: string): readonly [number, number, number, number] {
  if (address === undefined) return [0, 0, 0, 0];
  const parsed = parseIp(address);
  if (parsed === undefined) {
    throw new CodecError(field, `expected an IP address such as 10.0.0.5 or fd00::1, got ${JSON.stringify(address)}`);
  }
  const bytes = new Uint8Array(16);
  bytes.set(parsed);
  const [a = 0, b = 0, c = 0, d = 0] = new Uint32Array(bytes.buffer);
  return [a, b, c, d];
}
