import { CNI_CODE } from '../agent/api/cni-code.ts';
import type { Attachment } from '../agent/api/messages.ts';
import { throwIfFailed } from './plugin-answer.ts';
import type { Plugins } from './plugin-calls.ts';
import type { PluginConf } from './skel/conf.ts';
import { CniError } from './skel/error.ts';
import { makeResult } from './skel/result.ts';
import { type CniVersion, isAtLeast } from './skel/version.ts';

const PORTMAP = 'portmap';
/** Newest version that every release of portmap in use supports. Its configuration and prevResult are the same in 1.1.0. */
const PORTMAP_VERSION = '1.0.0';
/** Oldest version with chains of plugins, which portmap needs. */
const CHAIN_VERSION = '0.3.0';
/** What portmap answers to a DEL without iptables, where it can have mapped nothing. */
const NO_IPTABLES = 'neither iptables nor ip6tables usable';

/** The ports of one Pod's hostPort entries, mapped by the CNI project's plugin portmap. */
export type PortMapper = {
  /** Maps them to the Pod's addresses. @throws CniError with portmap's own */
  map(attachment: Attachment): void;
};

/**
 * Finds the plugin before anything is wired, so that a Pod without its ports takes no address.
 * @throws CniError code 5 when it is not there
 */
export function openPortMapper(conf: PluginConf, plugins: Plugins): PortMapper {
  const path = plugins.find(PORTMAP);
  if (path === undefined) {
    const ports = conf.portMappings.map(({ hostPort }) => hostPort).join(', ');
    throw new CniError(
      CNI_CODE.io,
      `hostPort ${ports}: the CNI plugin ${PORTMAP} is in no folder of CNI_PATH, ${plugins.folders}`,
      'install the reference plugins of the CNI project there (the agent does, from --reference-plugin-dir), or set --port-mapping=false to run such Pods without their hostPort',
    );
  }
  const cniVersion = portmapVersionOf(conf);
  return {
    map: (attachment) => {
      const prevResult = makeResult({ ...conf, cniVersion }, attachment, 'main');
      throwIfFailed(plugins.run(path, { ...confOf(conf, cniVersion), prevResult }), nameOf(cniVersion));
    },
  };
}

/**
 * Networks by whose names a Pod of before may be mapped: portmap finds a mapping by the network's name and the container.
 * Ours, ours with cilium-cni chained, and the product's of GlobalRoute Pods.
 */
const NETWORKS = ['tke-route-eni', 'generic-veth', 'tke-bridge'];

/**
 * Takes the mapping away, also one that was never made or is gone: before the address is released, which the next Pod gets.
 * That of a Pod which the agent took over from the product, or from before the network got another name, goes too: a later
 * Pod with its hostPort would not be reached.
 * @throws CniError with portmap's own; the runtime repeats the DEL
 */
export function unmapPorts(conf: PluginConf, plugins: Plugins): void {
  const path = plugins.find(PORTMAP);
  // Without the plugin nothing was mapped, and a Pod must be deletable.
  if (path === undefined) return;
  const cniVersion = portmapVersionOf(conf);
  for (const name of new Set([conf.name, ...NETWORKS])) {
    const answer = plugins.run(path, confOf({ ...conf, name }, cniVersion));
    if (answer.stdout.includes(NO_IPTABLES)) return;
    throwIfFailed(answer, nameOf(cniVersion));
  }
}

function portmapVersionOf({ cniVersion }: PluginConf): CniVersion {
  if (isAtLeast(cniVersion, PORTMAP_VERSION)) return PORTMAP_VERSION;
  return isAtLeast(cniVersion, CHAIN_VERSION) ? cniVersion : CHAIN_VERSION;
}

function confOf({ name, portMappings }: PluginConf, cniVersion: string): object {
  const entries = portMappings.map(({ entry }) => entry);
  return { cniVersion, name, type: PORTMAP, runtimeConfig: { portMappings: entries } };
}

function nameOf(cniVersion: string): string {
  return `${PORTMAP} (CNI ${cniVersion})`;
}
