import { applyOperations } from '../../dataplane/apply.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import type { FoundLink, FoundState, FoundSysctl, LinkSettings } from '../node/found-state.ts';
import type { Sweep } from './sweep.ts';

/**
 * Restores the settings that the first agent of this boot found. One that was changed by others since stays as it is.
 * Forwarding stays on, and with it the setting by which a forwarding host accepts router advertisements: kubelet's own
 * networking and every other CNI plugin need them, and do not set them a second time. Idempotent.
 */
export async function restoreSettings(kernel: Kernel, found: FoundState, sweep: Sweep): Promise<void> {
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
    if (now !== sysctl.set) return sweep.leave(`${name}=${now}: it was changed after we set ${sysctl.set}`);
    if (isShared(sysctl)) return sweep.leave(`${name}=${now}: others rely on it; it was ${sysctl.found}`);
    kernel.sysctl.set(key, sysctl.found);
    sweep.restored(`sysctl -w ${name}=${sysctl.found}`);
  });
}

/**
 * Tells whether other programs rely on a setting: forwarding, and accept_ra=2, with which a forwarding node accepts
 * RAs.
 */
function isShared({ path, set }: FoundSysctl): boolean {
  const setting = path.at(-1);
  return setting === 'ip_forward' || setting === 'forwarding' || (setting === 'accept_ra' && set === '2');
}

async function restoreLink(kernel: Kernel, { ifindex, ifname, found, set }: FoundLink, sweep: Sweep): Promise<void> {
  await sweep.step(`link ${ifname}`, async () => {
    const now = kernel.rtnetlink.link.get({ ifindex });
    if (now === undefined || now.ifname !== ifname) return;
    const isUp = ((now.flags ?? 0) & IFF_UP) !== 0;
    const change: LinkSettings = {
      ...(found.up !== undefined && found.up !== isUp && isUp === set.up ? { up: found.up } : {}),
      ...(found.mtu !== undefined && found.mtu !== now.mtu && now.mtu === set.mtu ? { mtu: found.mtu } : {}),
    };
    if (Object.keys(change).length === 0) return;
    const operation = { kind: 'set-link', ifindex, ifname, change, before: set } as const;
    await applyOperations(kernel, [operation]);
    sweep.restored(renderOperation(operation));
  });
}

/** @see netdevice(7) */
const IFF_UP = 1;
