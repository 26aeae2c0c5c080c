import { errnoName, errnoText } from './errno.ts';

/** What the kernel reports about a refused request, beyond its errno. @see uapi/linux/netlink.h NLMSGERR_ATTR_* */
export type Extack = {
  /** 'Nexthop has invalid gateway'. */
  readonly message?: string;
  /** Name of the offending attribute: 'gateway'; 'linkinfo.data' for one inside another. */
  readonly attribute?: string;
  /** Offset of the offending attribute in the request, bytes. */
  readonly offset?: number;
  /** Name of the missing attribute. */
  readonly missing?: string;
};

/** The fields of a NetlinkError. */
type NetlinkErrorInit = {
  readonly errno: number;
  /** 'RTM_NEWROUTE'. */
  readonly op: string;
  /** The request as an `ip` line. */
  readonly request: string;
  readonly extack?: Extack;
  /** An explanation of this library, when the kernel was not called or did not answer. */
  readonly detail?: string;
  readonly cause?: unknown;
};

/** A request that the kernel refused, or that got no usable answer. */
export class NetlinkError extends Error {
  override readonly name = 'NetlinkError';
  /**
   * 'EEXIST', 'ENODEV'…; set by this library: 'EINVAL' for a value that cannot be encoded, 'ETIMEDOUT' for no answer,
   * 'EBADMSG' for a malformed answer, 'EAGAIN' for a dump that was interrupted every time, 'EBADF' after `close`.
   */
  readonly code: string;
  readonly errno: number;
  readonly op: string;
  readonly request: string;
  declare readonly extack?: Extack;

  constructor(init: NetlinkErrorInit) {
    super(describe(init), init.cause === undefined ? undefined : { cause: init.cause });
    this.code = errnoName(init.errno);
    this.errno = init.errno;
    this.op = init.op;
    this.request = init.request;
    if (init.extack !== undefined) {
      this.extack = init.extack;
    }
  }
}

/** Reports whether `error` is a NetlinkError, of one of `codes` if any are given. */
export function isNetlinkError(error: unknown, ...codes: readonly string[]): error is NetlinkError {
  return error instanceof NetlinkError && (codes.length === 0 || codes.includes(error.code));
}

function describe({ errno, op, request, extack, detail }: NetlinkErrorInit): string {
  const parts = [extack?.message ?? detail ?? errnoText(errno)];
  if (extack?.attribute !== undefined) {
    parts.push(`attribute ${extack.attribute}`);
  }
  if (extack?.missing !== undefined) {
    parts.push(`missing attribute ${extack.missing}`);
  }
  return `${errnoName(errno)}: ${request}: ${parts.join(', ')} (${op})`;
}
