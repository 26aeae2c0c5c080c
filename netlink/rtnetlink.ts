import type { AddressMessage, AddressSpec } from './address-message.ts';
import type { LinkChange, LinkMessage, LinkRef, LinkSpec } from './link-message.ts';
import type { NeighMessage, NeighSpec } from './neigh-message.ts';
import type { NetlinkError } from './netlink-error.ts';
import type { Request, RouteQuery } from './request.ts';
import type { RouteMessage, RouteSpec } from './route-message.ts';
import type { RuleMessage, RuleSpec } from './rule-message.ts';

export type LinkFilter = { readonly kind?: string; readonly master?: number; readonly group?: number };

export type LinkService = {
  /** Makes a link; returns its ifindex, 0 if it was born in another namespace without a chosen index. */
  add(spec: LinkSpec): number;
  set(change: LinkChange): void;
  /** @throws NetlinkError ENODEV */
  delete(ref: LinkRef): void;
  /** Deletes on the thread pool: the kernel takes about 25 ms for a veth. @throws NetlinkError ENODEV */
  deleteInBackground(ifindex: number): Promise<void>;
  get(ref: LinkRef): LinkMessage | undefined;
  list(filter?: LinkFilter): readonly LinkMessage[];
};

export type AddressFilter = { readonly ifindex?: number; readonly family?: number };

export type AddressService = {
  add(spec: AddressSpec): void;
  replace(spec: AddressSpec): void;
  delete(spec: AddressSpec): void;
  list(filter?: AddressFilter): readonly AddressMessage[];
};

export type RouteFilter = {
  readonly family: number;
  readonly table?: number;
  readonly oif?: number;
  readonly protocol?: number;
  readonly type?: number;
};

export type RouteService = {
  add(spec: RouteSpec): void;
  replace(spec: RouteSpec): void;
  delete(spec: RouteSpec): void;
  list(filter: RouteFilter): readonly RouteMessage[];
  get(query: RouteQuery): RouteMessage;
};

export type RuleFilter = {
  readonly family: number;
  readonly priority?: number;
  readonly table?: number;
  readonly protocol?: number;
};

export type RuleListOptions = { readonly confirm?: 'auto' | 'always' | 'never' };

export type RuleService = {
  add(spec: RuleSpec): void;
  delete(spec: RuleSpec): void;
  list(filter: RuleFilter, options?: RuleListOptions): readonly RuleMessage[];
};

export type NeighFilter = { readonly ifindex?: number; readonly family?: number };

export type NeighService = {
  add(spec: NeighSpec): void;
  replace(spec: NeighSpec): void;
  delete(spec: NeighSpec): void;
  list(filter?: NeighFilter): readonly NeighMessage[];
};

export type Outcome =
  | { readonly kind: 'ok'; readonly ifindex?: number }
  | { readonly kind: 'error'; readonly error: NetlinkError }
  | { readonly kind: 'skipped' };

export type Rtnetlink = {
  readonly link: LinkService;
  readonly address: AddressService;
  readonly route: RouteService;
  readonly rule: RuleService;
  readonly neigh: NeighService;
  execute(requests: readonly Request[], options?: { readonly stopOnError?: boolean }): readonly Outcome[];
  close(): void;
  [Symbol.dispose](): void;
};

export type RtnetlinkOptions = { readonly receiveTimeoutMs?: number };

export declare function openRtnetlink(options?: RtnetlinkOptions): Rtnetlink;
export declare function openRtnetlinkIn(netns: { readonly fd: number }, options?: RtnetlinkOptions): Rtnetlink;
