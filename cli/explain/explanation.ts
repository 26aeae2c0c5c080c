import type { Finding } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';

/** How a packet would go, for people, JSON and the graph. */
export type Explanation = {
  /** Who was asked about, as found: 'Pod default/web-0, eth0, 10.0.1.5 on eni-1'. */
  readonly subject: string;
  readonly element: ElementId;
  readonly paths: readonly Path[];
  /** What of the node concerns this Pod and is no hop; broken hops are among them, each once. */
  readonly findings: readonly Finding[];
};

/** One direction of one conversation. */
export type Path = {
  readonly direction: 'from-pod' | 'to-pod';
  readonly from: string;
  readonly to: string;
  readonly hops: readonly Hop[];
};

/** One step of a packet. */
export type Hop = {
  readonly kind: 'pod' | 'neigh' | 'veth' | 'sysctl' | 'nft' | 'rule' | 'route' | 'link' | 'eni' | 'cloud';
  readonly element: ElementId;
  /** 'rule 1536: fwmark 0x10000/0xff0000 lookup 4003' */
  readonly title: string;
  /** Evidence, a line each. */
  readonly details: readonly string[];
  /** unknown: could not be read, the details say why. Hops after a broken one are what would come next. */
  readonly verdict: 'ok' | 'broken' | 'warning' | 'unknown';
  /** Of a broken hop or a warning. */
  readonly finding?: Finding;
};
