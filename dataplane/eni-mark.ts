import { KUBE_PROXY_MARKS, MAX_ENI_SLOT, NODEPORT_MARK } from './numbers.ts';

/** Returns the packet mark of an ENI: its slot (1..255) moved to where the mask begins. */
export function eniMark(slot: number, mask: number): number {
  return (slot << markShift(mask)) >>> 0;
}

/** Returns the slot of the ENI that a packet mark says. */
export function slotOfMark(mark: number, mask: number): number {
  return (mark & mask) >>> markShift(mask);
}

/** Returns every reason why `mask` cannot hold ENI slots; empty when it can. */
export function eniMarkMaskFaults(mask: number): readonly string[] {
  if (!Number.isInteger(mask) || mask <= 0 || mask > 0xffffffff) {
    return [`ENI mark mask ${mask}: expected a number from 0x1 to 0xffffffff`];
  }
  const faults: string[] = [];
  const moved = mask >>> markShift(mask);
  const isOneRun = (moved & (moved + 1)) === 0;
  if (!isOneRun || moved < MAX_ENI_SLOT) {
    faults.push(`ENI mark mask ${hex(mask)}: expected at least 8 bits in a row, such as 0xff0000`);
  }
  if (overlaps(mask, KUBE_PROXY_MARKS))
    faults.push(`ENI mark mask ${hex(mask)}: bits 0xc000 are kube-proxy's; choose others`);
  if (overlaps(mask, NODEPORT_MARK))
    faults.push(`ENI mark mask ${hex(mask)}: bit 0x80 is our NodePort mark; choose others`);
  return faults;
}

/** Renders a mark as ip(8) and nft(8) print it. */
export function hex(mark: number): string {
  return `0x${(mark >>> 0).toString(16)}`;
}

/** Reports whether two masks share a bit. */
export function overlaps(a: number, b: number): boolean {
  return (a & b) !== 0;
}

function markShift(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}
