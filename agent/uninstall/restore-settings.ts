import { applyOperations } from '../../dataplane/apply.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import { hasForeignValue, isShared, linkRestoration } from '../node/decide-restoration.ts';
import type { AddedAddress, FoundLink, FoundState, FoundSysctl } from '../node/found-state.ts';
import type { Sweep } from './sweep.ts';

/**
 * Deletes the addresses that agents of this boot added, and restores the settings that the first of them found. One that was changed by others since stays as it is.
 * Forwarding stays on, and with it the setting by which a forwarding host accepts router advertisements: kubelet's own
 * networking and every other CNI plugin need them, and do not set them a second time. Idempotent.
 */
export async function restoreSettings(kernel: Kernel, found: FoundState, sweep: Sweep): Promise<void> {
  for (const address of found.addresses ?? []) await removeAddress(kernel, address, sweep);
  for (const sysctl of found.sysctls) await restoreSysctl(kernel, sysctl, sweep);
  for (const link of found.links) await restoreLink(kernel, link, sweep);
}

async function restoreSysctl(kernel: Kernel, sysctl: FoundSysctl, sweep: Sweep): Promise<void> {
  const key = { path: sysctl.path };
  const name = sysctlName(key);
  await sweep.step(`sysctl ${name}`, () => {
    const now = kernel.sysctl.find(key);
    // The interface does not exist any more, or the value is restored already.
    if (now === undefined || now === sysctl.found) return;
    if (hasForeignValue(sysctl, now)) return sweep.leave(`${name}=${now}: it was changed after we set ${sysctl.set}`);
    if (isShared(sysctl)) return sweep.leave(`${name}=${now}: others rely on it; it was ${sysctl.found}`);
    kernel.sysctl.set(key, sysctl.found);
    sweep.restored(`sysctl -w ${name}=${sysctl.found}`);
  });
}

async function removeAddress(kernel: Kernel, address: AddedAddress, sweep: Sweep): Promise<void> {
  const operation = { kind: 'delete-address', address } as const;
  const shown = renderOperation(operation);
  await sweep.step(shown, async () => {
    if (kernel.rtnetlink.link.get({ ifindex: address.ifindex })?.ifname !== address.ifname) return;
    const { done } = await applyOperations(kernel, [operation]);
    if (done.length > 0) sweep.removed('address', shown);
  });
}

async function restoreLink(kernel: Kernel, entry: FoundLink, sweep: Sweep): Promise<void> {
  const { ifindex, ifname } = entry;
  await sweep.step(`link ${ifname}`, async () => {
    const now = kernel.rtnetlink.link.get({ ifindex });
    if (now === undefined || now.ifname !== ifname) return;
    const operation = linkRestoration(entry, { isUp: ((now.flags ?? 0) & IFF_UP) !== 0, mtu: now.mtu });
    if (operation === undefined) return;
    await applyOperations(kernel, [operation]);
    sweep.restored(renderOperation(operation));
  });
}

/** @see netdevice(7) */
const IFF_UP = 1;
