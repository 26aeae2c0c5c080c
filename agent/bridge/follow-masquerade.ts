import { execFile } from 'node:child_process';
import type { KubeClient } from '../../kube/kube-client.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { inTime } from '../../runtime/clock-timers.ts';
import { decideMasquerade } from '../pod-cidr/masquerade.ts';
import type { AgentParts } from '../state/ports.ts';

/** Dependencies of the decision. */
export type MasqueradeDeps = Pick<AgentParts, 'state' | 'clock' | 'log'> & {
  readonly configured: 'auto' | 'true' | 'false';
  readonly readChains: () => Promise<readonly string[] | undefined>;
  /** Undefined without a cluster: then there is no ConfigMap. */
  readonly kube: Pick<KubeClient, 'get'> | undefined;
  /** Called after the decision changed. */
  readonly changed: (cause: string) => void;
};

/** Interval of deciding again: ip-masq-agent may be installed later, or go. */
const POLL_MS = 60_000;
const READ_MS = 4_000;
const NAMESPACE = 'kube-system';
/** The product's name of the ConfigMap, and that of Kubernetes. */
const CONFIG_MAP_NAMES = ['ip-masq-agent-config', 'ip-masq-agent'] as const;

/** Decides again until aborted, once GlobalRoute Pods are or may be here. Never rejects. */
export async function followMasquerade(deps: MasqueradeDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (deps.state.isBridgeUsed) await updateMasquerade(deps, signal);
    await deps.clock.sleep(POLL_MS, signal).catch(() => {});
  }
}

/** Decides whether the agent masquerades packets of GlobalRoute Pods, and puts it in force. Never rejects. */
export async function updateMasquerade(deps: MasqueradeDeps, signal: AbortSignal): Promise<void> {
  const { state, configured, log } = deps;
  const isAuto = configured === 'auto';
  const chains = isAuto ? await deps.readChains() : undefined;
  const configMap = isAuto && chains?.length === 0 ? await findConfigMap(deps, signal) : undefined;
  const choice = decideMasquerade(configured, { chains, configMap });
  const before = state.masquerade;
  if (before?.isOn === choice.isOn && before.why === choice.why) return;
  state.masquerade = choice;
  log.info('masquerade of GlobalRoute Pods', { ...choice });
  if ((before?.isOn ?? false) !== choice.isOn) deps.changed('masquerade');
}

async function findConfigMap({ kube, clock, log }: MasqueradeDeps, signal: AbortSignal): Promise<string | undefined> {
  if (kube === undefined) return '';
  try {
    for (const name of CONFIG_MAP_NAMES) {
      const get = (limit: AbortSignal) => kube.get(CONFIG_MAPS, { namespace: NAMESPACE, name }, limit);
      const found = await inTime(clock, READ_MS, get, signal);
      if (found !== undefined) return `${NAMESPACE}/${name}`;
    }
    return '';
  } catch (error) {
    if (!signal.aborted) log.debug('the ConfigMap of ip-masq-agent was not read', { error });
    return undefined;
  }
}

/** A tool gets so long; both answer within milliseconds. */
const TIMEOUT_MS = 5_000;
/** Most bytes of an answer. Rules of 5,000 Services take two megabytes. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Lists the chains of the nat table, by backend of iptables. */
const COMMANDS = [
  ['nft', '-t', 'list', 'chains', 'ip'],
  ['iptables-legacy-save', '-t', 'nat'],
] as const;

/**
 * Finds the chains of ip-masq-agent in the nat tables of both backends of iptables. Runs two tools of the host's network
 * namespace. Undefined when neither could be run.
 */
export async function readMasqChains(): Promise<readonly string[] | undefined> {
  const outputs = await Promise.all(COMMANDS.map(([file, ...args]) => run(file, args)));
  if (outputs.every((output) => output === undefined)) return undefined;
  return masqChainsOf(outputs.join('\n'));
}

/** Extracts the names of ip-masq-agent's chains from what `nft list chains` or `iptables-save` print. */
export function masqChainsOf(text: string): readonly string[] {
  const names = [...text.matchAll(/(?:^\s*chain |^:)(IP-MASQ[A-Z-]{0,24})/gm)].map(([, name = '']) => name);
  return [...new Set(names)];
}

async function run(file: string, args: readonly string[]): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  execFile(file, [...args], { timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES }, (error, stdout) => {
    resolve(error === null ? stdout : undefined);
  });
  return await promise;
}
