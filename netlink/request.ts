import type { AddressSpec } from './address-message.ts';
import type { LinkChange, LinkRef, LinkSpec } from './link-message.ts';
import type { NeighSpec } from './neigh-message.ts';
import type { QdiscSpec } from './qdisc-request.ts';
import type { RouteSpec } from './route-message.ts';
import type { RuleSpec } from './rule-message.ts';
import type { TrafficFilterRef, TrafficFilterSpec } from './traffic-filter-request.ts';

/** Change of the kernel's state, as plain data: it can be compared, logged, rendered and sent in a batch. */
export type Request =
  | { readonly object: 'link'; readonly verb: 'add'; readonly spec: LinkSpec }
  | { readonly object: 'link'; readonly verb: 'set'; readonly spec: LinkChange }
  | { readonly object: 'link'; readonly verb: 'delete'; readonly spec: LinkRef }
  | { readonly object: 'address'; readonly verb: 'add' | 'replace' | 'delete'; readonly spec: AddressSpec }
  | { readonly object: 'route'; readonly verb: 'add' | 'replace' | 'delete'; readonly spec: RouteSpec }
  /** A rule is added with NLM_F_EXCL: otherwise the kernel would accept exact duplicates, as it does with `append`. */
  | { readonly object: 'rule'; readonly verb: 'add' | 'append' | 'delete'; readonly spec: RuleSpec }
  | { readonly object: 'neigh'; readonly verb: 'add' | 'replace' | 'delete'; readonly spec: NeighSpec }
  | { readonly object: 'qdisc'; readonly verb: 'add' | 'delete'; readonly spec: QdiscSpec }
  /** `replace` adds the filter, or changes its program in one step: packets pass the old one or the new one. */
  | { readonly object: 'filter'; readonly verb: 'replace'; readonly spec: TrafficFilterSpec }
  | { readonly object: 'filter'; readonly verb: 'delete'; readonly spec: TrafficFilterRef };

/** The arguments of a route look-up: `ip route get`. */
export type RouteQuery = {
  readonly dst: string;
  readonly src?: string;
  readonly iif?: number;
  readonly oif?: number;
  readonly mark?: number;
  readonly tos?: number;
  /** Owner of the sending socket. */
  readonly uid?: number;
  /** IPPROTO_*. */
  readonly ipProto?: number;
  readonly sport?: number;
  readonly dport?: number;
  /** Returns the route in the table that matched, not the resolved one. */
  readonly fibmatch?: boolean;
};

/** A reading request, as errors name it. */
export type Query =
  | { readonly object: 'link'; readonly verb: 'get'; readonly spec: LinkRef }
  | { readonly object: 'route'; readonly verb: 'get'; readonly spec: RouteQuery }
  | {
      readonly object: 'link' | 'address' | 'route' | 'rule' | 'neigh';
      readonly verb: 'list';
      readonly spec: Readonly<Record<string, unknown>>;
    };
