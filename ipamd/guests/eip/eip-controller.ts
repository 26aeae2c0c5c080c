import { isCloudError } from '../../../cloud/cloud-error.ts';
import { EIP_CLAIM_FIELDS, EIP_CLAIM_KIND, type EipClaim, eipClaim } from '../../../crd/eip-claim.ts';
import { CLOUD_FINALIZER, POD_ANNOTATION } from '../../../crd/names.ts';
import { hasPodEnded } from '../../../crd/pod-fields.ts';
import type { ReconcileResult } from '../../../kube/controller.ts';
import { withFinalizer, withoutFinalizer } from '../../../kube/finalizers.ts';
import { guardsOf } from '../../../kube/guarded-update.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { LastReports } from '../../../kube/reporter.ts';
import { apiVersionOf, EIP_CLAIMS, PODS } from '../../../kube/resource-types.ts';
import { Faults } from '../../../runtime/decode.ts';
import { recordOf } from '../../../runtime/json.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import { StampAges } from '../../../runtime/stamp-ages.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import { decideEip } from './decide-eip.ts';
import { claimBreaker, EIP_QUOTA, type EipDeps } from './eip-deps.ts';
import type { EipIntent, EipNote, EipSnapshot, EipSpec, EipStatus, EipStep, EipView } from './eip-view.ts';
import { observeEips } from './observe-eips.ts';
import { type OwnPart, OwnStatuses } from './own-statuses.ts';
import { EipRunner } from './run-eip-intent.ts';
import { intentOf } from './send-eip-call.ts';

/** More steps in one reconcile mean that two writers conflict, or that the decisions form a cycle. */
const MAX_STEPS = 24;
const RECHECK_MS = 5_000;
const CLOUD_RETRY_MS = 15_000;

/**
 * Reconciles the EIPs of Pods, claim by claim. Each reconcile reads the claim from the API server, because a decision
 * on an old state could allocate a superfluous EIP.
 */
export class EipController {
  readonly #deps: EipDeps;
  readonly #runner: EipRunner;
  readonly #retained: StampAges;
  readonly #own: OwnStatuses;
  /** Claims that are to be compared with the cloud although they wait for nothing. */
  readonly #toCompare = new Set<string>();
  /** Last notes on Pods without a claim. */
  readonly #last = new LastReports();
  /** Serializes steps that take an EIP of a list, or one of a node's EIPs: each sees what the one before took. */
  readonly #taking = new KeyedMutex();

  constructor(deps: EipDeps) {
    this.#deps = deps;
    this.#runner = new EipRunner(deps);
    this.#retained = new StampAges(deps.clock);
    this.#own = new OwnStatuses(deps.clock, deps.leader.term, (key) => this.requestComparison(key));
  }

  /** Makes the next reconcile of a claim compare it with the cloud. */
  requestComparison(key: string): void {
    this.#toCompare.add(key);
  }

  /** Reconciles the EIP of one Pod. Rejects with KubeError, for anything but a conflict, or the signal's reason. */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const pass: Pass = { key, signal, needsComparison: this.#toCompare.delete(key), snapshot: undefined };
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const result = await this.#step(pass);
      if (result === undefined) continue;
      // A comparison is followed by one more reconcile, which repairs the rest, the annotation included.
      const isCompared = pass.needsComparison || this.#toCompare.has(key);
      return isCompared && result.kind === 'done' ? { kind: 'again', afterMs: 1 } : result;
    }
    this.#deps.log.warn('an EIP does not settle', { pod: key });
    return { kind: 'again', afterMs: RECHECK_MS };
  }

  async #step(pass: Pass): Promise<ReconcileResult | undefined> {
    const object = await this.#read(pass);
    const claim = object === undefined ? undefined : decodeClaim(object);
    if (object !== undefined && claim === undefined) return this.#unreadable(pass.key);
    const { uid = '', deletionTimestamp } = object?.metadata ?? {};
    if (
      deletionTimestamp !== undefined &&
      !(await this.#deps.definitions.isOwnDeletion(EIP_CLAIM_KIND, uid, pass.signal))
    )
      return { kind: 'again', afterMs: RECHECK_MS };
    const edit = claim === undefined ? undefined : this.#own.editOf(pass.key, claim);
    if (edit !== undefined && edit.waitMs > 0) return { kind: 'again', afterMs: edit.waitMs };
    if (edit !== undefined) return await this.#undo(pass, object, claim, edit);
    const view = this.#viewOf(pass, claim);
    const step = decideEip(view);
    if (!isTaking(step, claim)) return await this.#run(pass, object, view, step);
    return await this.#taking.run('', async () => {
      const now = this.#viewOf({ ...pass, snapshot: this.#withRivals(pass) }, claim);
      return await this.#run(pass, object, now, decideEip(now));
    });
  }

  async #run(
    pass: Pass,
    object: KubeObject | undefined,
    view: EipView,
    step: EipStep,
  ): Promise<ReconcileResult | undefined> {
    const { claim } = view;
    switch (step.kind) {
      case 'rest':
        this.#reportWaiting(pass, view, step.note);
        return step.afterMs === undefined ? { kind: 'done' } : { kind: 'again', afterMs: step.afterMs };
      case 'create':
        return await this.#create(pass, step);
      case 'look':
        return await this.#observe(pass, step.eipIds, claim?.status ?? {});
      case 'annotate':
        return await this.#annotate(pass, view, step.publicIp);
      case 'write':
        if (step.isEnding === true && (await this.#isPodAlive(pass, view)))
          return { kind: 'again', afterMs: RECHECK_MS };
        await this.#write(pass, object, step.spec, step.status, step.note, view);
        return undefined;
      case 'begin':
        if (step.call.action === 'DisassociateAddress' && (await this.#isPodAlive(pass, view)))
          return { kind: 'again', afterMs: RECHECK_MS };
        return await this.#beginCall(pass, object, view, step);
      case 'resolve':
        return await this.#runCall(pass, object, view, step.intent, 'resolve');
      case 'finish':
        return await this.#finish(pass, object);
    }
  }

  #viewOf(
    { key, snapshot, needsComparison }: Pick<Pass, 'key' | 'snapshot' | 'needsComparison'>,
    claim: EipClaim | undefined,
  ): EipView {
    const { podOf, limitOf, claimCache, breakers, clock, leader, config } = this.#deps;
    const pod = podOf(key);
    const nodeName = pod?.target?.nodeName;
    const capacity =
      nodeName === undefined
        ? { limit: undefined, used: 0 }
        : { limit: limitOf(nodeName), used: claimCache.usedOn(nodeName, key) };
    return {
      key,
      clusterId: leader.clusterId,
      pod,
      claim,
      snapshot,
      needsComparison,
      capacity,
      allocationRefusal: breakers.refusalOf(EIP_QUOTA, key),
      nowMs: clock.nowMs(),
      retainedForMs: this.#retained.ageMs(key, claim?.status?.retainedSince),
      claimExpiredMs: config.claimExpiredDurationMs,
    };
  }

  #withRivals({ key, snapshot }: Pass): EipSnapshot | undefined {
    return snapshot === undefined ? undefined : { ...snapshot, rivals: this.#deps.claimCache.rivalsOf(key) };
  }

  async #read({ key, signal }: Pass): Promise<KubeObject | undefined> {
    const { kube, claimCache } = this.#deps;
    // A claim that comes while it is read is another one.
    const revision = claimCache.revisionOf(key);
    const object = await kube.get(EIP_CLAIMS, refOfKey(key), signal);
    if (object !== undefined) claimCache.note(object);
    else this.#noteDeleted(key, revision);
    return object;
  }

  #noteDeleted(key: string, revision: string | undefined): void {
    this.#deps.claimCache.noteDeleted(key, revision);
    this.#own.remove(key);
  }

  /** Writes status and holder as ipamd had them. */
  async #undo(
    pass: Pass,
    object: KubeObject | undefined,
    claim: EipClaim | undefined,
    { part, fields }: { readonly part: OwnPart; readonly fields: readonly string[] },
  ): Promise<undefined> {
    const { podUID: _edited, ...rest } = claim?.spec ?? {};
    const spec: EipSpec = { ...rest, ...(part.podUID === undefined ? {} : { podUID: part.podUID }) };
    const written = await this.#put(pass, object, spec, part.status);
    if (written === undefined) return;
    this.#own.noteUndone(pass.key);
    const message = `another client changed ${fields.join(', ')}, which ipamd alone writes: undone`;
    this.#deps.log.warn('an object that another client changed is repaired', { pod: pass.key, fields });
    this.#deps.events.record({
      involved: involvedObject(EIP_CLAIMS, written.metadata),
      type: 'Warning',
      reason: 'ObjectMended',
      message,
    });
  }

  /** Handles a malformed claim: its EIP stays unchanged until the claim can be read. */
  #unreadable(key: string): ReconcileResult {
    this.#deps.log.warn('an EIPClaim cannot be read, its EIP stays unchanged', { pod: key });
    return { kind: 'again', afterMs: 60_000 };
  }

  async #create(
    { key, signal }: Pass,
    { spec, workload }: Extract<EipStep, { readonly kind: 'create' }>,
  ): Promise<ReconcileResult | undefined> {
    const { namespace, name } = refOfKey(key);
    const object: KubeObject = withFinalizer(
      {
        apiVersion: apiVersionOf(EIP_CLAIMS),
        kind: EIP_CLAIMS.kind,
        metadata: { namespace, name, ...(workload === undefined ? {} : { ownerReferences: [{ ...workload }] }) },
        spec,
        status: { phase: 'Pending' },
      },
      CLOUD_FINALIZER,
    );
    try {
      this.#deps.claimCache.note(await this.#deps.kube.create(EIP_CLAIMS, object, signal));
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
    }
    return undefined;
  }

  async #observe(pass: Pass, eipIds: readonly string[], status: EipStatus): Promise<ReconcileResult | undefined> {
    const { breakers, clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const refusal = breakers.refusalOf(describeBreaker(pass.key), pass.key);
    if (refusal !== undefined) return { kind: 'again', afterMs: refusal.afterMs };
    try {
      const seen = await observeEips(this.#deps, pass.key, eipIds, this.#runner.contextOf(pass.key, pass.signal));
      breakers.reset(describeBreaker(pass.key));
      if (this.#runner.isOfBefore(pass.key, status, seen, beganMs)) return { kind: 'again', afterMs: RECHECK_MS };
      pass.snapshot = seen;
      return undefined;
    } catch (error) {
      pass.signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      breakers.trip(describeBreaker(pass.key), Math.max(error.afterMs, RECHECK_MS), error.message);
      this.#deps.log.warn('EIPs cannot be described', { pod: pass.key, error: error.message });
      return { kind: 'again', afterMs: CLOUD_RETRY_MS };
    }
  }

  async #annotate(pass: Pass, { pod }: EipView, publicIp: string | undefined): Promise<ReconcileResult> {
    const body = {
      metadata: {
        ...(pod === undefined ? {} : { uid: pod.uid }),
        annotations: { [POD_ANNOTATION.eipPublicIp]: publicIp ?? null },
      },
    };
    try {
      await this.#deps.kube.patch(PODS, refOfKey(pass.key), { kind: 'merge', body }, pass.signal);
    } catch (error) {
      // Another Pod, or none: its event enqueues the key again.
      if (!isKubeError(error, 'NOT_FOUND', 'CONFLICT', 'INVALID')) throw error;
    }
    // The watch brings the changed Pod; until then it would be written again and again.
    return { kind: 'again', afterMs: ANNOTATED_MS };
  }

  async #beginCall(
    pass: Pass,
    object: KubeObject | undefined,
    view: EipView,
    step: Extract<EipStep, { readonly kind: 'begin' }>,
  ): Promise<ReconcileResult | undefined> {
    const { key } = pass;
    const refusal = this.#deps.breakers.refusalOf(claimBreaker(key), key);
    if (refusal !== undefined) return { kind: 'again', afterMs: refusal.afterMs };
    const intent = intentOf(this.#deps, key, object?.metadata.uid ?? '', step.call);
    const status = { ...step.status, intents: [intent] };
    const written = await this.#put(pass, object, undefined, status);
    if (written === undefined) return undefined;
    return await this.#runCall(pass, written, { ...view, claim: decodeClaim(written) }, intent, 'send');
  }

  async #runCall(
    pass: Pass,
    object: KubeObject | undefined,
    view: EipView,
    intent: EipIntent,
    how: 'send' | 'resolve',
  ): Promise<ReconcileResult | undefined> {
    const { claim } = view;
    if (claim === undefined) return undefined;
    const one = { key: pass.key, claim };
    const { status, note, afterMs } = await this.#runner[how](one, intent, pass.signal);
    const again = afterMs === undefined ? undefined : ({ kind: 'again', afterMs } as const);
    if (status === undefined) return again;
    // The call has changed what was described before it.
    pass.snapshot = undefined;
    return (await this.#write(pass, object, undefined, status, note, view)) ? again : undefined;
  }

  /** Makes one guarded write, and records its event. Returns false when another client wrote first, or deleted the claim. */
  async #write(
    pass: Pass,
    object: KubeObject | undefined,
    spec: EipSpec | undefined,
    status: EipStatus,
    note: EipNote | undefined,
    view: EipView,
  ): Promise<boolean> {
    const isWritten = (await this.#put(pass, object, spec, status)) !== undefined;
    if (isWritten && note !== undefined) this.#report(pass.key, view, note);
    return isWritten;
  }

  /** Makes one guarded write; undefined when another client wrote first, or deleted the claim. */
  async #put(
    { key, signal }: Pass,
    object: KubeObject | undefined,
    spec: EipSpec | undefined,
    status: EipStatus,
  ): Promise<KubeObject | undefined> {
    if (object === undefined) return undefined;
    signal.throwIfAborted();
    const known = recordOf(object['status']);
    const isBeingDeleted = object.metadata.deletionTimestamp !== undefined;
    const next = {
      // A person may have removed the finalizer; on an object that is being deleted it cannot be added again.
      ...(isBeingDeleted ? object : withFinalizer(object, CLOUD_FINALIZER)),
      ...(spec === undefined ? {} : { spec: mergedPart(object['spec'], spec, EIP_CLAIM_FIELDS.spec) }),
      status: mergedPart(known, status, EIP_CLAIM_FIELDS.status),
    };
    this.#own.noteAttempt(key, { status, ...(spec === undefined ? {} : { spec }) });
    try {
      const written = await this.#deps.kube.update(EIP_CLAIMS, next, signal);
      this.#deps.claimCache.note(written);
      const claim = decodeClaim(written);
      if (claim !== undefined) this.#own.note(key, claim);
      return written;
    } catch (error) {
      if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return undefined;
      throw error;
    }
  }

  /** Reads the Pod from the API server: giving up its EIP cannot be undone, and a watch may be behind. */
  async #isPodAlive({ key, signal }: Pass, { pod, claim }: EipView): Promise<boolean> {
    if (pod !== undefined) return false;
    const object = await this.#deps.kube.get(PODS, refOfKey(key), signal);
    if (object === undefined || object.metadata.uid !== claim?.spec?.podUID) return false;
    return !hasPodEnded(recordOf(object['status'])) && object.metadata.deletionTimestamp === undefined;
  }

  async #finish({ key, signal }: Pass, object: KubeObject | undefined): Promise<ReconcileResult | undefined> {
    if (object === undefined) return { kind: 'done' };
    const { kube, breakers } = this.#deps;
    const { resourceVersion } = object.metadata;
    try {
      const freed = await kube.update(EIP_CLAIMS, withoutFinalizer(object, CLOUD_FINALIZER), signal);
      if (object.metadata.deletionTimestamp === undefined) {
        await kube.delete(EIP_CLAIMS, refOfKey(key), guardsOf(freed.metadata), signal);
      }
      this.#noteDeleted(key, freed.metadata.resourceVersion);
    } catch (error) {
      // Another client wrote in between: run another step.
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
      return undefined;
    }
    this.#deps.log.info('EIPClaim ended', { pod: key, resourceVersion });
    for (const breaker of [claimBreaker(key), describeBreaker(key)]) breakers.reset(breaker);
    return undefined;
  }

  #reportWaiting({ key }: Pass, view: EipView, note: EipNote | undefined): void {
    const { pod } = view;
    const notes = note === undefined || pod === undefined ? [] : [note];
    const added = this.#last.note(key, notes, ({ message }) => JSON.stringify([pod?.uid, message]));
    for (const one of added ?? []) this.#report(key, view, one);
  }

  #report(key: string, { pod, claim }: EipView, { type, reason, message }: EipNote): void {
    const involved =
      pod === undefined
        ? involvedObject(EIP_CLAIMS, { ...refOfKey(key), uid: claim?.metadata.uid })
        : involvedObject(PODS, { ...refOfKey(key), uid: pod.uid });
    this.#deps.events.record({ involved, type, reason, message });
  }
}

type Pass = {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly needsComparison: boolean;
  snapshot: EipSnapshot | undefined;
};

const ANNOTATED_MS = 2_000;

function describeBreaker(key: string): string {
  return `eip-look/${key}`;
}

/** Reports whether a step takes something that another claim may need too. */
function isTaking(step: EipStep, claim: EipClaim | undefined): boolean {
  if (step.kind !== 'write' && step.kind !== 'begin') return false;
  const { eipID, nodeName } = claim?.status ?? {};
  return step.status.eipID !== eipID || step.status.nodeName !== nodeName;
}

function decodeClaim(object: KubeObject): EipClaim | undefined {
  return eipClaim(object, '', new Faults());
}

/** Returns ipamd's fields as decided, and unknown fields unchanged. */
function mergedPart(known: unknown, desired: object, ours: ReadonlySet<string>): object {
  const others = Object.entries(recordOf(known)).filter(([name]) => !ours.has(name));
  return { ...Object.fromEntries(others), ...desired };
}
