import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { isOwnEni } from '../../crd/cloud-tags.ts';
import { CLOUD_FINALIZER } from '../../crd/names.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { withoutFinalizer } from '../../kube/finalizers.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { VPC_ENIS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { refOfKey } from '../cache/pod-facts.ts';
import { decodeVpcEni, VPC_ENIS_BY, type VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import { MAX_DESCRIPTION_AGE_MS } from '../calls/recent-changes.ts';
import type { Term } from '../calls/term.ts';
import { isSameData } from '../decide/same-data.ts';
import {
  decideVpcEni,
  type NodeEniEntry,
  type VpcEniFacts,
  type VpcEniPhase,
  type VpcEniStep,
} from './decide-vpc-eni.ts';
import { newVpcEni, withEni, withMessage } from './render-vpc-eni.ts';

type VpcEniTerm = Pick<Term, 'cloud' | 'kube' | 'config' | 'vpcEnis' | 'definitions' | 'clock' | 'log' | 'events'>;

/** Finds the nodes whose object contains an ENI, in the cache. */
type FindEntries = (eniId: string) => readonly NodeEniEntry[];

/** A static ENI is checked at this interval: its claim may have ended without an event. */
const STATIC_RECHECK_MS = 60_000;
/** A deletion that is not possible now is tried again after this. */
const WAIT_MS = 30_000;
const CALL_MS = 60_000;
/** Describe, decide, write: more rounds than any state of one ENI needs. */
const MAX_ROUNDS = 8;

/**
 * Reconciles the VpcENIs of exclusive ENIs: they show the state of each ENI, and ENIs that are not needed any more are
 * deleted.
 */
export class VpcEniReconciler {
  readonly #term: VpcEniTerm;
  readonly #entriesOf: FindEntries;
  /** Since when each description lacks an ENI, by its id; monotonic milliseconds. */
  readonly #absentSinceMs = new Map<string, number>();

  constructor(term: VpcEniTerm, entriesOf: FindEntries) {
    this.#term = term;
    this.#entriesOf = entriesOf;
  }

  /** Reconciles the VpcENI of one ENI. Idempotent. @throws KubeError and CloudError of what is retried */
  async reconcile(eniId: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { vpcEnis, definitions } = this.#term;
    let vpcEni = vpcEnis.byIndex(VPC_ENIS_BY.eni, eniId)[0];
    // With the definition of its kind nothing is deleted but the object.
    if (vpcEni?.isLeaving === true && !(await definitions.isOwnDeletion(VPC_ENI_KIND, vpcEni.uid, signal)))
      return requeueAfter(WAIT_MS);
    let facts: VpcEniFacts = { vpcEni, entries: this.#entriesOf(eniId), claim: 'unknown', cloud: 'unasked' };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const step = decideVpcEni({ ...facts, vpcEni });
      switch (step.kind) {
        case 'none':
          return vpcEni?.phase === 'Available' ? requeueAfter(STATIC_RECHECK_MS) : { kind: 'done' };
        case 'look':
          facts = { ...facts, cloud: await this.#observe(eniId, signal) };
          if (facts.cloud === 'absent' && !this.#isGone(eniId)) return requeueAfter(WAIT_MS);
          continue;
        case 'ask-claim':
          facts = { ...facts, claim: await this.#readClaim(vpcEni, signal) };
          continue;
        case 'write': {
          const written = await this.#write(vpcEni, step, signal);
          if (written === undefined || !isWithoutNode(step)) return { kind: 'done' };
          vpcEni = written;
          continue;
        }
        case 'wait':
          await this.#report(vpcEni, step.why, signal);
          return requeueAfter(WAIT_MS);
        case 'delete-eni':
          if (!(await this.#deleteEni(eniId, vpcEni, signal))) return requeueAfter(WAIT_MS);
          facts = { ...facts, cloud: await this.#observe(eniId, signal) };
          if (facts.cloud !== 'absent') return requeueAfter(WAIT_MS);
          continue;
        case 'let-go':
          await this.#deleteObject(vpcEni, signal);
          this.#absentSinceMs.delete(eniId);
          return { kind: 'done' };
      }
    }
    return requeueAfter(WAIT_MS);
  }

  async #observe(eniId: string, signal: AbortSignal): Promise<VpcEniFacts['cloud']> {
    const [eni] = await this.#term.cloud.enis.describe([eniId], this.#context(signal));
    if (eni === undefined) return 'absent';
    this.#absentSinceMs.delete(eniId);
    if (!isOwnEni(eni.tags, this.#term.config.clusterId)) return 'foreign';
    if (eni.state !== 'AVAILABLE') return 'moving';
    return eni.attachment === undefined ? 'free' : 'bound';
  }

  /** Reports whether descriptions lack the ENI for so long that none of them can be older than it is. */
  #isGone(eniId: string): boolean {
    const nowMs = this.#term.clock.monotonicMs();
    const sinceMs = this.#absentSinceMs.get(eniId) ?? nowMs;
    this.#absentSinceMs.set(eniId, sinceMs);
    return nowMs - sinceMs >= MAX_DESCRIPTION_AGE_MS;
  }

  /** Reads the claim from the API server: with a stale cache an ENI could be deleted that a Pod waits for. */
  async #readClaim(vpcEni: VpcEniEntry | undefined, signal: AbortSignal): Promise<VpcEniFacts['claim']> {
    const claim = await this.#term.kube.get(VPC_IP_CLAIMS, refOfKey(vpcEni?.claim ?? ''), signal);
    if (claim === undefined) return this.#term.definitions.wereLostLately ? 'kept' : 'ended';
    const status = recordOf(claim['status']);
    if (status['phase'] === 'Releasing') return 'ended';
    // The claim has another ENI for good: two were created because the first was not known in time.
    const ips = listOf(status['ips']);
    return ips.length === 0 || ips.includes(vpcEni?.primaryIp) ? 'kept' : 'ended';
  }

  /** Writes the object; returns its new state, undefined when it was deleted. */
  async #write(
    vpcEni: VpcEniEntry | undefined,
    { entry, phase }: Extract<VpcEniStep, { readonly kind: 'write' }>,
    signal: AbortSignal,
  ): Promise<VpcEniEntry | undefined> {
    const { kube, clock, log } = this.#term;
    const nowText = new Date(clock.nowMs()).toISOString();
    if (vpcEni === undefined) {
      if (entry === undefined) return undefined;
      const created = await this.#create({ entry, phase, nowText }, signal);
      return created === undefined ? undefined : decodeVpcEni(created);
    }
    const change = (current: KubeObject): KubeObject | undefined => {
      const desired = withEni(current, entry, phase, nowText);
      return isSameData(desired, current) ? undefined : desired;
    };
    if (change(vpcEni.object) === undefined) return vpcEni;
    const written = await updateGuarded(kube, VPC_ENIS, { name: vpcEni.name }, change, {
      current: vpcEni.object,
      signal,
    });
    if (written !== undefined && vpcEni.phase !== phase)
      log.info('the phase of an exclusive ENI has changed', {
        eniID: vpcEni.eniId,
        claim: vpcEni.claim,
        from: vpcEni.phase,
        to: phase,
      });
    return written === undefined ? undefined : decodeVpcEni(written);
  }

  async #create(
    { entry, phase, nowText }: { readonly entry: NodeEniEntry; readonly phase: VpcEniPhase; readonly nowText: string },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { kube } = this.#term;
    const object = newVpcEni(entry, phase, nowText);
    try {
      return await kube.create(VPC_ENIS, object, signal);
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
    }
    // The watch is behind, or another client changed the id of the ENI: the object of its name is that of the ENI.
    const change = (current: KubeObject): KubeObject | undefined => {
      if (current.metadata.deletionTimestamp !== undefined) return undefined;
      const desired = withEni(current, entry, phase, nowText);
      return isSameData(desired, current) ? undefined : desired;
    };
    return await updateGuarded(kube, VPC_ENIS, { name: object.metadata.name }, change, { signal });
  }

  async #deleteEni(eniId: string, vpcEni: VpcEniEntry | undefined, signal: AbortSignal): Promise<boolean> {
    const { cloud, log } = this.#term;
    const context = this.#context(signal);
    try {
      const outcome = await cloud.tasks.settle(await cloud.enis.delete(eniId, context), context);
      log.info('a static ENI is deleted', { eniID: eniId, claim: vpcEni?.claim, outcome: outcome.kind });
      return true;
    } catch (error) {
      if (isCloudError(error, 'gone')) return true;
      if (!isCloudError(error)) throw error;
      await this.#report(vpcEni, `it could not be deleted: ${error.message}`, signal);
      return false;
    }
  }

  async #deleteObject(vpcEni: VpcEniEntry | undefined, signal: AbortSignal): Promise<void> {
    if (vpcEni === undefined) return;
    const { kube } = this.#term;
    const ref = { name: vpcEni.name };
    if (!vpcEni.isLeaving) await kube.delete(VPC_ENIS, ref, { uid: vpcEni.uid }, signal);
    const change = (current: KubeObject): KubeObject | undefined => {
      if (current.metadata.uid !== vpcEni.uid || !decodeVpcEni(current).hasFinalizer) return undefined;
      return withoutFinalizer(current, CLOUD_FINALIZER);
    };
    await updateGuarded(kube, VPC_ENIS, ref, change, { signal });
  }

  /** Reports a problem in the object, and in an event when it is new. */
  async #report(vpcEni: VpcEniEntry | undefined, message: string, signal: AbortSignal): Promise<void> {
    if (vpcEni === undefined) return;
    const { kube, events } = this.#term;
    const text = `ENI ${vpcEni.eniId}: ${message}`;
    const change = (current: KubeObject): KubeObject | undefined => {
      const desired = withMessage(current, text);
      return isSameData(desired, current) ? undefined : desired;
    };
    if (change(vpcEni.object) === undefined) return;
    await updateGuarded(kube, VPC_ENIS, { name: vpcEni.name }, change, { signal });
    const involved = involvedObject(VPC_ENIS, vpcEni);
    events.record({ involved, type: 'Warning', reason: 'DirectENIStuck', message: text });
  }

  #context(signal: AbortSignal): CallContext {
    return { priority: 'gc', owner: 'vpcenis', signal, timeoutMs: CALL_MS };
  }
}

/** Reports whether the write was made without a node: then the next step is decided at once. */
function isWithoutNode({ entry }: Extract<VpcEniStep, { readonly kind: 'write' }>): boolean {
  return entry === undefined;
}

function requeueAfter(afterMs: number): ReconcileResult {
  return { kind: 'again', afterMs };
}
