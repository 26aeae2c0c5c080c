import type { AddressMessage } from './address-message.ts';
import type { LinkMessage } from './link-message.ts';
import type { NeighMessage } from './neigh-message.ts';
import type { RouteMessage } from './route-message.ts';
import type { RuleMessage } from './rule-message.ts';

export type MonitorGroup =
  | 'link'
  | 'ipv4-ifaddr'
  | 'ipv6-ifaddr'
  | 'ipv4-route'
  | 'ipv6-route'
  | 'ipv4-rule'
  | 'ipv6-rule'
  | 'neigh'
  | 'nftables';

type Change<K extends string, M> = {
  readonly kind: K;
  readonly op: 'new' | 'del';
  readonly message: M;
  /** Port of the socket that asked for the change; 0: the kernel itself. */
  readonly portid: number;
};

export type MonitorEvent =
  | Change<'link', LinkMessage>
  | Change<'address', AddressMessage>
  | Change<'route', RouteMessage>
  | Change<'rule', RuleMessage>
  | Change<'neigh', NeighMessage>
  | { readonly kind: 'nftables'; readonly generation?: number; readonly pid?: number; readonly process?: string }
  /** Events were lost: read everything anew. */
  | { readonly kind: 'overrun' };

export type MonitorOptions = { readonly groups: readonly MonitorGroup[]; readonly rcvbufBytes?: number };

export type Monitor = AsyncIterable<MonitorEvent> & { close(): void; [Symbol.dispose](): void };

export declare function openMonitor(options: MonitorOptions): Monitor;
export declare function openMonitorIn(netns: { readonly fd: number }, options: MonitorOptions): Monitor;
