import { EIP_SRC_CIDRS_ANNOTATION } from '../../../crd/names.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import { type Informer, openInformer } from '../../../kube/informer.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { Reporter } from '../../../kube/reporter.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { recordOf } from '../../../runtime/json.ts';
import type { Term } from '../../calls/term.ts';
import type { InformerDeps } from '../../term/open-informers.ts';
import { decideMasqConfig } from './decide-masq-config.ts';
import type { EipClaimEntry } from './eip-claim-cache.ts';

/** The ConfigMap with the configuration of ip-masq-agent. */
export const MASQ_CONFIG_MAP = { namespace: 'kube-system', name: 'ip-masq-agent-config' } as const;
const KEY = 'config';
/** Annotation with the entries that ipamd added: no other entry is ever removed. */
const OURS = EIP_SRC_CIDRS_ANNOTATION;

/** Dependencies of the sync of ip-masq-agent's configuration. */
type SyncMasqDeps = Pick<Term, 'kube' | 'clock' | 'log' | 'events'> & {
  /** Of the one ConfigMap. */
  readonly masqConfigs: Informer<KubeObject>;
  readonly eipClaims: Informer<EipClaimEntry>;
};

/** ip-masq-agent reads the configuration once a minute: changes within this time are written together. */
const BATCH_MS = 2_000;
const RESYNC_MS = 300_000;

/**
 * Keeps the addresses of Pods with an EIP in `NonMasqueradeSrcCIDRs` of ip-masq-agent until aborted: otherwise the
 * node's address would replace the Pod's. The ConfigMap is never created, and entries of people are never changed.
 */
export async function syncMasqConfig(deps: SyncMasqDeps, signal: AbortSignal): Promise<void> {
  const { masqConfigs: configMaps, eipClaims: claims, clock } = deps;
  await Promise.all([configMaps.synced(signal), claims.synced(signal)]);
  const changed = new ChangeSignal(clock);
  const ends = [configMaps.subscribe(() => changed.notify()), claims.subscribe(() => changed.notify())];
  const reporter = new Reporter<'ConfigInvalid'>('the configuration of ip-masq-agent', deps);
  try {
    while (!signal.aborted) {
      await writeConfig(deps, reporter, signal);
      await changed.wait(RESYNC_MS, signal);
      await clock.sleep(BATCH_MS, signal);
    }
  } finally {
    for (const end of ends) end();
  }
}

/** Opens the informer of that ConfigMap, whether it exists or not; for the leader only. */
export function openMasqConfig(deps: InformerDeps): Informer<KubeObject> {
  const { namespace, name } = MASQ_CONFIG_MAP;
  const query = { namespace, fieldSelector: `metadata.name=${name}` };
  return openInformer<KubeObject>({ ...deps, type: CONFIG_MAPS, decode: (object) => object, query });
}

async function writeConfig(
  deps: SyncMasqDeps,
  reporter: Reporter<'ConfigInvalid'>,
  signal: AbortSignal,
): Promise<void> {
  const { kube, masqConfigs: configMaps, eipClaims: claims, log } = deps;
  const [current] = [...configMaps.values()];
  if (current === undefined) return;
  const desired = desiredEntriesOf(claims.values());
  const change = (object: KubeObject): KubeObject | undefined => {
    const data = recordOf(object['data']);
    const text = data[KEY];
    const ours = (object.metadata.annotations?.[OURS] ?? '').split(',').filter((one) => one !== '');
    const step = decideMasqConfig(typeof text === 'string' ? text : '', ours, desired);
    if (step.kind === 'unreadable')
      reporter.report(involvedObject(CONFIG_MAPS, object.metadata), desired.length > 0 ? [faultOf(step.message)] : []);
    if (step.kind !== 'write') return undefined;
    reporter.report(involvedObject(CONFIG_MAPS, object.metadata), []);
    const { [OURS]: _ours, ...others } = object.metadata.annotations ?? {};
    const annotations = step.ours.length === 0 ? others : { ...others, [OURS]: step.ours.join(',') };
    return { ...object, metadata: { ...object.metadata, annotations }, data: { ...data, [KEY]: step.text } };
  };
  try {
    await updateGuarded(kube, CONFIG_MAPS, MASQ_CONFIG_MAP, change, { current, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (!isKubeError(error)) throw error;
    log.warn('the configuration of ip-masq-agent is not written, will be tried again', { error: error.message });
  }
}

/**
 * Lists the addresses from the start of the binding: a flow that began without the entry would keep the node's address.
 */
function desiredEntriesOf(claims: Iterable<EipClaimEntry>): readonly string[] {
  const ips = [...claims].flatMap(({ claim }) => claim?.status?.privateIP ?? []);
  return [...new Set(ips)].sort().map((ip) => `${ip}/32`);
}

function faultOf(fault: string): { readonly reason: 'ConfigInvalid'; readonly message: string } {
  const message = `ConfigMap ${MASQ_CONFIG_MAP.namespace}/${MASQ_CONFIG_MAP.name}, key ${KEY}: ${fault}; Pods with an EIP may leave with the address of their node`;
  return { reason: 'ConfigInvalid', message };
}
