import type { ElementId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';

/** How packets would go: for people, as JSON, and for the graph. */
export type Explanation = {
  /** What the user asked about, with what was found: 'Pod default/web-0, eth0, 10.0.1.5 on eni-1'. */
  readonly subject: string;
  readonly element: ElementId;
  readonly paths: readonly Path[];
  /** Findings about this Pod: those of its hops, each once, and those of the node that belong to no hop. */
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
  /** Evidence, one line each. */
  readonly details: readonly string[];
  /** unknown: it could not be read, the details say why. Hops after a broken one show what would come next. */
  readonly verdict: 'ok' | 'broken' | 'warning' | 'unknown';
  /** Set for a broken hop and for a warning. */
  readonly finding?: Finding;
};
