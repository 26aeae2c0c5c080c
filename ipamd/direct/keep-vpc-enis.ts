import type { CallContext, Cloud } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { API_VERSION } from '../../crd/names.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { isSameData } from '../nec/same-data.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import { decideVpcEni, type EniPlace, type VpcEniFacts, type VpcEniStep } from './decide-vpc-eni.ts';
import { newVpcEni, withEni, withMessage, withoutFinalizer } from './render-vpc-eni.ts';
import { decodeVpcEni, type VpcEniEntry } from './vpc-eni-entry.ts';

/** The resource type of VpcENIs. */
export const VPC_ENIS = resourceTypeOf(VPC_ENI_KIND);
const CLAIMS = resourceTypeOf(VPC_IP_CLAIM_KIND);

/** Dependencies of the VpcENI reconciler; one for each term of leadership. */
export type VpcEniDeps = {
  readonly cloud: Pick<Cloud, 'enis' | 'tasks'>;
  readonly kube: KubeClient;
  /** Finds the VpcENI of an ENI, in the cache. */
  readonly find: (eniId: string) => VpcEniEntry | undefined;
  /** Finds the nodes whose object contains an ENI, in the cache. */
  readonly placesOf: (eniId: string) => readonly EniPlace[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
};

/** A static ENI is checked at this interval: its claim may have ended without an event. */
const KEPT_LOOK_MS = 60_000;
/** A deletion that is not possible now is tried again after this. */
const WAIT_MS = 30_000;
const CALL_MS = 60_000;
/** Describe, decide, write: more rounds than any state of one ENI needs. */
const MOST_ROUNDS = 8;

/**
 * Reconciles the VpcENIs of exclusive ENIs: they show the state of each ENI, and ENIs that are not needed any more are
 * deleted.
 */
export class VpcEniKeeper {
  readonly #deps: VpcEniDeps;

  constructor(deps: VpcEniDeps) {
    this.#deps = deps;
  }

  /** Reconciles the VpcENI of one ENI. Idempotent. @throws KubeError and CloudError of what is retried */
  async reconcile(eniId: string, signal: AbortSignal): Promise<ReconcileResult> {
    let held = this.#deps.find(eniId);
    let facts: VpcEniFacts = { held, places: this.#deps.placesOf(eniId), claim: 'unknown', cloud: 'unasked' };
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const step = decideVpcEni({ ...facts, held });
      switch (step.kind) {
        case 'none':
          return held?.phase === 'Available' ? again(KEPT_LOOK_MS) : { kind: 'done' };
        case 'look':
          facts = { ...facts, cloud: await this.#look(eniId, signal) };
          continue;
        case 'ask-claim':
          facts = { ...facts, claim: await this.#claimOf(held, signal) };
          continue;
        case 'write': {
          const written = await this.#write(held, step, signal);
          if (written === undefined || !isOnItsOwn(step)) return { kind: 'done' };
          held = written;
          continue;
        }
        case 'wait':
          await this.#tell(held, step.why, signal);
          return again(WAIT_MS);
        case 'delete-eni':
          if (!(await this.#delete(eniId, held, signal))) return again(WAIT_MS);
          facts = { ...facts, cloud: await this.#look(eniId, signal) };
          if (facts.cloud !== 'absent') return again(WAIT_MS);
          continue;
        case 'let-go':
          await this.#letGo(held, signal);
          return { kind: 'done' };
      }
    }
    return again(WAIT_MS);
  }

  async #look(eniId: string, signal: AbortSignal): Promise<VpcEniFacts['cloud']> {
    const [eni] = await this.#deps.cloud.enis.describe([eniId], this.#context(signal));
    if (eni === undefined) return 'absent';
    if (eni.state !== 'AVAILABLE') return 'moving';
    return eni.attachment === undefined ? 'free' : 'bound';
  }

  /** Reads the claim from the API server: with a stale cache an ENI could be deleted that a Pod waits for. */
  async #claimOf(held: VpcEniEntry | undefined, signal: AbortSignal): Promise<VpcEniFacts['claim']> {
    const [namespace = '', name = ''] = (held?.claim ?? '').split('/');
    const claim = await this.#deps.kube.get(CLAIMS, { namespace, name }, signal);
    if (claim === undefined) return 'ended';
    const status = isRecord(claim['status']) ? claim['status'] : {};
    if (status['phase'] === 'Releasing') return 'ended';
    // The claim has another ENI for good: two were created because the first was not known in time.
    const ips: readonly unknown[] = Array.isArray(status['ips']) ? status['ips'] : [];
    return ips.length === 0 || ips.includes(held?.primaryIp) ? 'kept' : 'ended';
  }

  /** Writes the object; returns its new state, undefined when it was deleted. */
  async #write(
    held: VpcEniEntry | undefined,
    { place, phase }: Extract<VpcEniStep, { readonly kind: 'write' }>,
    signal: AbortSignal,
  ): Promise<VpcEniEntry | undefined> {
    const { kube, clock, log } = this.#deps;
    const nowText = new Date(clock.nowMs()).toISOString();
    if (held === undefined) {
      if (place === undefined) return undefined;
      const made = await this.#create(newVpcEni(place, phase, nowText), signal);
      return made === undefined ? undefined : decodeVpcEni(made);
    }
    const change = (current: KubeObject): KubeObject | undefined => {
      const wanted = withEni(current, place, phase, nowText);
      return isSameData(wanted, current) ? undefined : wanted;
    };
    if (change(held.object) === undefined) return held;
    const written = await updateGuarded(kube, VPC_ENIS, { name: held.name }, change, { current: held.object, signal });
    if (written !== undefined && held.phase !== phase)
      log.info('an exclusive ENI stands otherwise', {
        eniID: held.eniId,
        claim: held.claim,
        from: held.phase,
        to: phase,
      });
    return written === undefined ? undefined : decodeVpcEni(written);
  }

  async #create(object: KubeObject, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#deps.kube.create(VPC_ENIS, object, signal);
    } catch (error) {
      // The watch is behind: its event enqueues the ENI again.
      if (isKubeError(error, 'ALREADY_EXISTS')) return undefined;
      throw error;
    }
  }

  async #delete(eniId: string, held: VpcEniEntry | undefined, signal: AbortSignal): Promise<boolean> {
    const { cloud, log } = this.#deps;
    const context = this.#context(signal);
    try {
      const outcome = await cloud.tasks.settle(await cloud.enis.delete(eniId, context), context);
      log.info('a kept ENI is deleted', { eniID: eniId, claim: held?.claim, outcome: outcome.kind });
      return true;
    } catch (error) {
      if (isCloudError(error, 'gone')) return true;
      if (!isCloudError(error)) throw error;
      await this.#tell(held, `it could not be deleted: ${error.message}`, signal);
      return false;
    }
  }

  async #letGo(held: VpcEniEntry | undefined, signal: AbortSignal): Promise<void> {
    if (held === undefined) return;
    const { kube } = this.#deps;
    const ref = { name: held.name };
    if (!held.isLeaving) await kube.delete(VPC_ENIS, ref, { uid: held.uid }, signal);
    const change = (current: KubeObject): KubeObject | undefined => {
      if (current.metadata.uid !== held.uid || !decodeVpcEni(current).hasFinalizer) return undefined;
      return withoutFinalizer(current);
    };
    await updateGuarded(kube, VPC_ENIS, ref, change, { signal });
  }

  /** Reports a problem in the object, and in an event when it is new. */
  async #tell(held: VpcEniEntry | undefined, message: string, signal: AbortSignal): Promise<void> {
    if (held === undefined) return;
    const { kube, events } = this.#deps;
    const text = `ENI ${held.eniId}: ${message}`;
    const change = (current: KubeObject): KubeObject | undefined => {
      const wanted = withMessage(current, text);
      return isSameData(wanted, current) ? undefined : wanted;
    };
    if (change(held.object) === undefined) return;
    await updateGuarded(kube, VPC_ENIS, { name: held.name }, change, { signal });
    const involved = { apiVersion: API_VERSION, kind: VPC_ENI_KIND.kind, name: held.name, uid: held.uid };
    events.record({ involved, type: 'Warning', reason: 'DirectENIStuck', message: text });
  }

  #context(signal: AbortSignal): CallContext {
    return { priority: 'gc', owner: 'vpcenis', signal, timeoutMs: CALL_MS };
  }
}

/** Tells whether the write was made without a node: then the next step is decided at once. */
function isOnItsOwn({ place }: Extract<VpcEniStep, { readonly kind: 'write' }>): boolean {
  return place === undefined;
}

function again(afterMs: number): ReconcileResult {
  return { kind: 'again', afterMs };
}
