import { BRIDGE_ALIAS, BRIDGE_IFINDEX } from './numbers.ts';
import type { NewBridge } from './operation.ts';

/** A link of the host's namespace. */
type Link = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly kind?: string | undefined;
  readonly ifalias?: string | undefined;
  readonly master?: number | undefined;
};

/** What becomes of the bridge; `keep` says why, for people. */
type BridgeRemoval =
  | { readonly kind: 'none' }
  | { readonly kind: 'delete'; readonly bridge: NewBridge }
  | { readonly kind: 'keep'; readonly why: string };

/**
 * Decides what an uninstall does about the bridge of GlobalRoute Pods: it is deleted when we made it and it has no port.
 * Ours is known by its index, which no other program chooses, or by its alias, also under another name.
 */
export function decideBridgeRemoval(links: readonly Link[], name: string): BridgeRemoval {
  const bridges = links.filter(({ kind }) => kind === 'bridge');
  const ours = bridges.find(({ ifindex, ifalias }) => ifindex === BRIDGE_IFINDEX || ifalias === BRIDGE_ALIAS);
  if (ours === undefined) {
    return bridges.some(({ ifname }) => ifname === name)
      ? { kind: 'keep', why: `${name} was made by another program` }
      : { kind: 'none' };
  }
  const ports = links.filter(({ master }) => master === ours.ifindex).map(({ ifname }) => ifname);
  if (ports.length === 0) return { kind: 'delete', bridge: { ifindex: ours.ifindex, ifname: ours.ifname } };
  const shown = `${ports.slice(0, 3).join(', ')}${ports.length > 3 ? `, and ${ports.length - 3} more` : ''}`;
  return { kind: 'keep', why: `${ours.ifname} has ports: ${shown}` };
}
