import type { SecurityRule } from '../security-group-book.ts';
import type { ListenerPath } from './types.ts';

/** What a load balancer does at layer 7: everything that its proxy needs. A table replaces the one before as a whole. */
export type ProxyTable = {
  readonly loadBalancerId: string;
  readonly vip: string;
  /** Whether its security groups decide alone: those of targets are not asked. Absent: they are. */
  readonly passes?: true;
  /** At most 50. */
  readonly listeners: readonly ProxyListener[];
};

/** A listener of HTTP or HTTPS. */
export type ProxyListener = {
  readonly listenerId: string;
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  /** Who is admitted, the first that fits; undefined: everyone. */
  readonly admission?: readonly Pick<SecurityRule, 'cidr' | 'isAccepted'>[];
  /** That of a client whose server name has none of its own. HTTPS without any ends each handshake. */
  readonly defaultCertificate?: ProxyCertificate;
  /** By domain; a wildcard is `*.example.com`. */
  readonly certificates?: Readonly<Record<string, ProxyCertificate>>;
  readonly rules: readonly ProxyRule[];
};

/** A certificate in PEM with its key. */
export type ProxyCertificate = {
  readonly cert: string;
  readonly key: string;
  /** The authority of clients' certificates: then a client needs one. */
  readonly clientCa?: string;
};

/** A rule of a listener: which requests, and where they go. */
export type ProxyRule = {
  readonly ruleId: string;
  /** '' stands for the VIP; `*.example.com` and `www.example.*` are wildcards. */
  readonly domain: string;
  /** `/prefix`, `=/exact`, `~regex` or `~*regex` (letters of either case). */
  readonly url: string;
  /** Whether its domain serves hosts that no rule names. */
  readonly isDefault?: true;
  readonly healthCheck: ListenerPath['healthCheck'];
  readonly targets: ListenerPath['targets'];
  /** Whether a client keeps its target, by its address. */
  readonly isSticky?: true;
  /** How long a target may take to answer, in milliseconds; default 60,000. */
  readonly answerMs?: number;
  /** Absent: requests go to targets. */
  readonly redirect?: ProxyRedirect;
};

/** Where a redirect leads. */
export type ProxyRedirect = {
  readonly code: 301 | 302 | 307;
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  /** '' or a wildcard: the host of the request. */
  readonly domain: string;
  /** The path of the target's rule; undefined: path and query of the request. */
  readonly url?: string;
};
