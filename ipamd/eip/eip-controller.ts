import { isCloudError } from '../../cloud/cloud-error.ts';
import { EIP_CLAIM_FIELDS, type EipClaim, eipClaim } from '../../crd/eip-claim.ts';
import { CLOUD_FINALIZER, POD_ANNOTATION } from '../../crd/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { withFinalizer, withoutFinalizer } from '../../kube/finalizers.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { apiVersionOf, PODS } from '../../kube/resource-types.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import { decideEip } from './decide-eip.ts';
import { claimBreaker, EIP_CLAIMS, EIP_QUOTA, type EipDeps } from './eip-deps.ts';
import type { EipNote, EipSight, EipSpec, EipStatus, EipStep, EipView } from './eip-view.ts';
import { lookAtEips } from './look-at-eips.ts';
import { intentOf } from './make-eip-call.ts';
import { EipRunner, type RunOutcome } from './run-eip-intent.ts';

/** More steps in one reconcile mean that two writers conflict, or that the decisions form a cycle. */
const MOST_STEPS = 24;
const AGAIN_MS = 5_000;
const CLOUD_SILENT_MS = 15_000;

/**
 * Reconciles the EIPs of Pods, claim by claim. Each reconcile reads the claim from the API server, because a decision
 * on an old state could allocate a superfluous EIP.
 */
export class EipController {
  readonly #deps: EipDeps;
  readonly #runner: EipRunner;
  /** Claims that are to be compared with the cloud although they are settled. */
  readonly #doubted = new Set<string>();
  /** Last note on Pods without a claim, by their uid. */
  readonly #told = new Map<string, string>();
  /** Serializes steps that take an EIP of a list, or one of a node's EIPs: each sees what the one before took. */
  readonly #taking = new KeyedMutex();

  constructor(deps: EipDeps) {
    this.#deps = deps;
    this.#runner = new EipRunner(deps);
  }

  /** Makes the next reconcile of a claim compare it with the cloud. */
  doubt(key: string): void {
    this.#doubted.add(key);
  }

  /** Reconciles the EIP of one Pod. Rejects with KubeError, for anything but a conflict, or the signal's reason. */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const turn: Turn = { key, signal, isDoubted: this.#doubted.delete(key), sight: undefined };
    for (let steps = 0; steps < MOST_STEPS; steps++) {
      const result = await this.#step(turn);
      if (result === undefined) continue;
      // A comparison is followed by one more reconcile, which repairs the rest, the annotation included.
      return turn.isDoubted && result.kind === 'done' ? { kind: 'again', afterMs: 1 } : result;
    }
    this.#deps.log.warn('an EIP does not come to rest', { pod: key });
    return { kind: 'again', afterMs: AGAIN_MS };
  }

  async #step(turn: Turn): Promise<ReconcileResult | undefined> {
    const object = await this.#read(turn);
    const claim = object === undefined ? undefined : decodeClaim(object);
    if (object !== undefined && claim === undefined) return this.#unreadable(turn.key);
    const view = this.#viewOf(turn, claim);
    const step = decideEip(view);
    if (!isTaking(step, claim)) return await this.#run(turn, object, view, step);
    return await this.#taking.run('', async () => {
      const now = this.#viewOf({ ...turn, sight: this.#withRivals(turn) }, claim);
      return await this.#run(turn, object, now, decideEip(now));
    });
  }

  async #run(
    turn: Turn,
    object: KubeObject | undefined,
    view: EipView,
    step: EipStep,
  ): Promise<ReconcileResult | undefined> {
    switch (step.kind) {
      case 'rest':
        this.#tellWaiting(turn, view, step.note);
        return step.afterMs === undefined ? { kind: 'done' } : { kind: 'again', afterMs: step.afterMs };
      case 'create':
        return await this.#create(turn, step);
      case 'look':
        return await this.#look(turn, step.eipIds);
      case 'annotate':
        return await this.#annotate(turn, view, step.publicIp);
      case 'write':
        if (step.isEnding === true && (await this.#livesOn(turn, view))) return { kind: 'again', afterMs: AGAIN_MS };
        return await this.#write(turn, object, step.spec, step.status, step.note, view);
      case 'begin':
        return await this.#begin(turn, object, view, step);
      case 'resolve':
        return await this.#settle(turn, object, view, step.intent, 'resolve');
      case 'finish':
        return await this.#finish(turn, object);
    }
  }

  #viewOf({ key, sight, isDoubted }: Pick<Turn, 'key' | 'sight' | 'isDoubted'>, claim: EipClaim | undefined): EipView {
    const { podOf, limitOf, book, breakers, clock, leader, claimExpiredMs } = this.#deps;
    const pod = podOf(key);
    const nodeName = pod?.target?.nodeName;
    const room =
      nodeName === undefined
        ? { limit: undefined, used: 0 }
        : { limit: limitOf(nodeName), used: book.usedOn(nodeName, key) };
    return {
      key,
      clusterId: leader.clusterId,
      pod,
      claim,
      sight,
      isDoubted,
      room,
      allocationRefusal: breakers.refusalOf(EIP_QUOTA, key),
      nowMs: clock.nowMs(),
      claimExpiredMs,
    };
  }

  #withRivals({ key, sight }: Turn): EipSight | undefined {
    return sight === undefined ? undefined : { ...sight, rivals: this.#deps.book.rivalsOf(key) };
  }

  async #read({ key, signal }: Turn): Promise<KubeObject | undefined> {
    const object = await this.#deps.kube.get(EIP_CLAIMS, refOf(key), signal);
    if (object === undefined) this.#deps.book.forget(key);
    else this.#deps.book.note(object);
    return object;
  }

  /** Handles a malformed claim: its EIP stays unchanged until the claim can be read. */
  #unreadable(key: string): ReconcileResult {
    this.#deps.log.warn('an EIPClaim cannot be read, its EIP stays as it is', { pod: key });
    return { kind: 'again', afterMs: 60_000 };
  }

  async #create(
    { key, signal }: Turn,
    { spec, workload }: Extract<EipStep, { readonly kind: 'create' }>,
  ): Promise<ReconcileResult | undefined> {
    const { namespace, name } = refOf(key);
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
      this.#deps.book.note(await this.#deps.kube.create(EIP_CLAIMS, object, signal));
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
    }
    return undefined;
  }

  async #look(turn: Turn, eipIds: readonly string[]): Promise<ReconcileResult | undefined> {
    const { breakers } = this.#deps;
    const refusal = breakers.refusalOf(lookBreaker(turn.key), turn.key);
    if (refusal !== undefined) return { kind: 'again', afterMs: refusal.afterMs };
    try {
      turn.sight = await lookAtEips(this.#deps, turn.key, eipIds, this.#runner.contextOf(turn.key, turn.signal));
      breakers.reset(lookBreaker(turn.key));
      return undefined;
    } catch (error) {
      turn.signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      breakers.trip(lookBreaker(turn.key), Math.max(error.afterMs, AGAIN_MS), error.message);
      this.#deps.log.warn('EIPs cannot be described', { pod: turn.key, error: error.message });
      return { kind: 'again', afterMs: CLOUD_SILENT_MS };
    }
  }

  async #annotate(turn: Turn, { pod }: EipView, publicIp: string | undefined): Promise<ReconcileResult> {
    const body = {
      metadata: {
        ...(pod === undefined ? {} : { uid: pod.uid }),
        annotations: { [POD_ANNOTATION.eipPublicIp]: publicIp ?? null },
      },
    };
    try {
      await this.#deps.kube.patch(PODS, refOf(turn.key), { kind: 'merge', body }, turn.signal);
    } catch (error) {
      // Another Pod, or none: its event enqueues the key again.
      if (!isKubeError(error, 'NOT_FOUND', 'CONFLICT', 'INVALID')) throw error;
    }
    // The watch brings the changed Pod; until then it would be written again and again.
    return { kind: 'again', afterMs: ANNOTATED_MS };
  }

  async #begin(
    turn: Turn,
    object: KubeObject | undefined,
    view: EipView,
    step: Extract<EipStep, { readonly kind: 'begin' }>,
  ): Promise<ReconcileResult | undefined> {
    const { key } = turn;
    const refusal = this.#deps.breakers.refusalOf(claimBreaker(key), key);
    if (refusal !== undefined) return { kind: 'again', afterMs: refusal.afterMs };
    const intent = intentOf(this.#deps, key, object?.metadata.uid ?? '', step.call);
    const status = { ...step.status, intents: [intent] };
    const written = await this.#put(turn, object, undefined, status);
    if (written === undefined) return undefined;
    return await this.#settle(turn, written, { ...view, claim: decodeClaim(written) }, intent, 'send');
  }

  async #settle(
    turn: Turn,
    object: KubeObject | undefined,
    view: EipView,
    intent: Parameters<EipRunner['send']>[1],
    how: 'send' | 'resolve',
  ): Promise<ReconcileResult | undefined> {
    const { claim } = view;
    if (claim === undefined) return undefined;
    const one = { key: turn.key, claim };
    const outcome = await this.#runner[how](one, intent, turn.signal);
    if (outcome.kind === 'wait') return { kind: 'again', afterMs: outcome.ms };
    // The call has changed what was described before it.
    turn.sight = undefined;
    const isWritten = (await this.#put(turn, object, undefined, outcome.status)) !== undefined;
    if (isWritten) this.#tellOutcome(turn, view, outcome);
    return outcome.kind === 'open' && isWritten ? { kind: 'again', afterMs: outcome.afterMs } : undefined;
  }

  #tellOutcome(turn: Turn, view: EipView, outcome: Extract<RunOutcome, { readonly status: EipStatus }>): void {
    if (outcome.kind === 'ended' && outcome.note !== undefined) this.#tell(turn.key, view, outcome.note);
  }

  async #write(
    turn: Turn,
    object: KubeObject | undefined,
    spec: EipSpec | undefined,
    status: EipStatus,
    note: EipNote | undefined,
    view: EipView,
  ): Promise<undefined> {
    if ((await this.#put(turn, object, spec, status)) !== undefined && note !== undefined) {
      this.#tell(turn.key, view, note);
    }
    return undefined;
  }

  /** Makes one guarded write; undefined when another client wrote first, or deleted the claim. */
  async #put(
    { signal }: Turn,
    object: KubeObject | undefined,
    spec: EipSpec | undefined,
    status: EipStatus,
  ): Promise<KubeObject | undefined> {
    if (object === undefined) return undefined;
    signal.throwIfAborted();
    const known = isRecord(object['status']) ? object['status'] : {};
    const isGoing = object.metadata.deletionTimestamp !== undefined;
    const next = {
      // A person may have removed the finalizer; on an object that is being deleted it cannot be added again.
      ...(isGoing ? object : withFinalizer(object, CLOUD_FINALIZER)),
      ...(spec === undefined ? {} : { spec: mergedPart(object['spec'], spec, EIP_CLAIM_FIELDS.spec) }),
      status: mergedPart(known, status, EIP_CLAIM_FIELDS.status),
    };
    try {
      const written = await this.#deps.kube.update(EIP_CLAIMS, next, signal);
      this.#deps.book.note(written);
      return written;
    } catch (error) {
      if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return undefined;
      throw error;
    }
  }

  /** Reads the Pod from the API server: giving up its EIP cannot be undone, and a watch may be behind. */
  async #livesOn({ key, signal }: Turn, { pod, claim }: EipView): Promise<boolean> {
    if (pod !== undefined) return false;
    const object = await this.#deps.kube.get(PODS, refOf(key), signal);
    if (object === undefined || object.metadata.uid !== claim?.spec?.podUID) return false;
    const phase = isRecord(object['status']) ? object['status']['phase'] : undefined;
    return phase !== 'Succeeded' && phase !== 'Failed' && object.metadata.deletionTimestamp === undefined;
  }

  async #finish({ key, signal }: Turn, object: KubeObject | undefined): Promise<ReconcileResult | undefined> {
    if (object === undefined) return { kind: 'done' };
    const { kube, book, breakers } = this.#deps;
    const { uid, resourceVersion } = object.metadata;
    try {
      const freed = await kube.update(EIP_CLAIMS, withoutFinalizer(object, CLOUD_FINALIZER), signal);
      if (object.metadata.deletionTimestamp === undefined) {
        const only = { ...(uid === undefined ? {} : { uid }), ...versionOf(freed) };
        await kube.delete(EIP_CLAIMS, refOf(key), only, signal);
      }
    } catch (error) {
      // Another client wrote in between: run another step.
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
      return undefined;
    }
    this.#deps.log.info('EIPClaim ended', { pod: key, resourceVersion });
    book.forget(key);
    for (const breaker of [claimBreaker(key), lookBreaker(key)]) breakers.reset(breaker);
    return undefined;
  }

  #tellWaiting({ key }: Turn, view: EipView, note: EipNote | undefined): void {
    const { pod } = view;
    if (note === undefined || pod === undefined) return;
    if (this.#told.get(pod.uid) === note.message) return;
    if (this.#told.size > MOST_TOLD) this.#told.clear();
    this.#told.set(pod.uid, note.message);
    this.#tell(key, view, note);
  }

  #tell(key: string, { pod, claim }: EipView, { type, reason, message }: EipNote): void {
    const place = refOf(key);
    const involved =
      pod === undefined
        ? { apiVersion: apiVersionOf(EIP_CLAIMS), kind: EIP_CLAIMS.kind, ...place, ...uidOf(claim?.metadata.uid) }
        : { apiVersion: 'v1', kind: PODS.kind, ...place, uid: pod.uid };
    this.#deps.events.record({ involved, type, reason, message });
  }
}

type Turn = {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly isDoubted: boolean;
  sight: EipSight | undefined;
};

const MOST_TOLD = 10_000;
const ANNOTATED_MS = 2_000;

function lookBreaker(key: string): string {
  return `eip-look/${key}`;
}

/** Tells whether a step takes something that another claim may need too. */
function isTaking(step: EipStep, claim: EipClaim | undefined): boolean {
  if (step.kind !== 'write' && step.kind !== 'begin') return false;
  const { eipID, nodeName } = claim?.status ?? {};
  return step.status.eipID !== eipID || step.status.nodeName !== nodeName;
}

function decodeClaim(object: KubeObject): EipClaim | undefined {
  return eipClaim(object, '', new Faults());
}

/** Splits a key into namespace and name. */
function refOf(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

function uidOf(uid: string | undefined): { readonly uid?: string } {
  return uid === undefined ? {} : { uid };
}

function versionOf({ metadata: { resourceVersion } }: KubeObject): { readonly resourceVersion?: string } {
  return resourceVersion === undefined ? {} : { resourceVersion };
}

/** Returns ipamd's fields as decided, and unknown fields unchanged. */
function mergedPart(known: unknown, wanted: object, ours: ReadonlySet<string>): object {
  const others = Object.entries(isRecord(known) ? known : {}).filter(([name]) => !ours.has(name));
  return { ...Object.fromEntries(others), ...wanted };
}
