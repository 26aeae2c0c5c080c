import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { type ChainedPlugin, hasCilium } from '../config/chained-plugins.ts';
import type { WantedFastPath } from '../fast-path/choose-fast-path.ts';
import type { ConfVersions } from './chain-versions.ts';
import { type PlannedFile, TEXT } from './planned-file.ts';

/**
 * Name of our conflist. Runtimes take the first file by name; 10 comes before all usual ones, and leaves lower numbers
 * free.
 */
export const CONFLIST_FILE = '10-tke-eni.conflist';

/** What the conflist depends on. */
export type ConflistOptions = {
  readonly socket: string;
  readonly mtu: number;
  readonly portMapping: boolean;
  readonly bandwidth: boolean;
  /** Plugins of the user, in their order. */
  readonly chainedPlugins: readonly ChainedPlugin[];
  /** What is asked for by --fast-path. Absent: off. */
  readonly fastPath?: WantedFastPath;
};

/** Lists the plugins that are called after ours, in their order. */
export function pluginsAfterOurs({
  bandwidth,
  chainedPlugins,
}: Pick<ConflistOptions, 'bandwidth' | 'chainedPlugins'>): readonly ChainedPlugin[] {
  const shaping = { type: 'bandwidth', capabilities: { bandwidth: true } };
  const ofUser = chainedPlugins.map((plugin) =>
    plugin.type === 'cilium-cni' ? { 'chaining-mode': CILIUM_MODE, ...plugin } : plugin,
  );
  return [...(bandwidth ? [shaping] : []), ...ofUser];
}

/**
 * Cilium's mode for links that another plugin made. cilium-cni reads it from `chaining-mode`; old releases take the name
 * of the network.
 */
const CILIUM_MODE = 'generic-veth';

/**
 * Renders the network configuration list of the node: our plugin first, then bandwidth if it is configured, then the
 * plugins of the user. With `portMapping` the runtime sends ours the ports of Pods with a hostPort: it calls portmap for
 * them (`cni-plugins/map-ports.ts`), so that other Pods do not pay for it and the versions of the list do not depend on it.
 */
export function renderConflist(options: ConflistOptions, versions: ConfVersions): string {
  const filterPlace = hasFilterPlace(options);
  const capabilities = {
    ...(options.portMapping ? { portMappings: true } : {}),
    ...(filterPlace ? { bandwidth: true } : {}),
  };
  const plugins: Record<string, unknown>[] = [
    {
      type: 'tke-route-eni',
      backend: `unix:${options.socket}`,
      ...(options.mtu > 0 ? { mtu: options.mtu } : {}),
      ...(Object.keys(capabilities).length > 0 ? { capabilities } : {}),
      ...(filterPlace ? { filterPlace } : {}),
    },
  ];
  plugins.push(...pluginsAfterOurs(options));
  const { cniVersion, cniVersions } = versions;
  const name = hasCilium(options.chainedPlugins) ? CILIUM_MODE : 'tke-route-eni';
  return `${JSON.stringify({ cniVersion, cniVersions, name, plugins }, null, 2)}\n`;
}

/**
 * Reports whether our plugin may take the place of traffic filters for the programs of the fast path. Plugins of the user may need
 * it. bandwidth needs it for a Pod with a limit, and with its capability the runtime tells ours of that limit too.
 */
function hasFilterPlace({ chainedPlugins, fastPath }: ConflistOptions): boolean {
  return chainedPlugins.length === 0 && (fastPath === 'bpf' || fastPath === 'auto');
}

/**
 * Plans the conflist where the runtime finds it; from then on the runtime sends Pods to this agent. An equal file is not written
 * again, because runtimes reload on each change.
 */
export function planConflist(confDir: string, text: string): PlannedFile {
  return { path: join(confDir, CONFLIST_FILE), source: { kind: 'text', text }, mode: TEXT, owner: 'ours' };
}

/** Removes our conflist, so that the runtime reports the node's network as not ready. Idempotent. */
export function removeConflist(confDir: string): void {
  rmSync(join(confDir, CONFLIST_FILE), { force: true, recursive: true });
}

/**
 * Name of a file beside a conflist that was removed by command: an agent that runs does not put it back. The next one that
 * starts does.
 */
const REMOVED_MARKER = `${CONFLIST_FILE}.removed`;

/** Removes our conflist until an agent starts. Idempotent. @throws the file system's own error */
export function withdrawConflist(confDir: string): void {
  if (existsSync(confDir)) writeFileAtomically(join(confDir, REMOVED_MARKER), '', TEXT);
  removeConflist(confDir);
}

/** Reports whether our conflist was removed by command. */
export function isWithdrawn(confDir: string): boolean {
  return existsSync(join(confDir, REMOVED_MARKER));
}

/** Ends the effect of `withdrawConflist`. Idempotent. */
export function endWithdrawal(confDir: string): void {
  rmSync(join(confDir, REMOVED_MARKER), { force: true, recursive: true });
}
