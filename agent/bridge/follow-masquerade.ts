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
