import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancerOutcome, LoadBalancerTask } from '../../cloud/load-balancers.ts';
import type { RefusedTargets, TargetRef, TargetSpec } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { PlainStep, RuleStep, StepTarget } from './load-balancer-step.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import type { Refusal } from './refused-targets.ts';
import {
  listenerKeyOf,
  placesOf,
  type RuleKey,
  type RuleListenerKey,
  ruleKeyOf,
  type TargetPlace,
  targetIdOf,
} from './target-place.ts';
import type { UnresolvedCalls } from './unresolved-calls.ts';

/** A change of a load balancer that the cloud did not make. */
export class StepError extends Error {
  readonly code = 'STEP_FAILED';

  constructor(message: string) {
    super(message);
    this.name = 'StepError';
  }
}

/** Enough to find some bad targets among hundreds. */
const MAX_SPLITS = 24;

/** Runs steps on one load balancer, and knows the ids of the listeners that it made. */
export class StepRunner {
  readonly #cloud: ControllerDeps['cloud'];
  readonly #calls: UnresolvedCalls;
  readonly #id: string;
  /** By key of a listener of any layer. */
  readonly #listenerIds: Map<string, string>;
  /** What has targets, by its key. */
  readonly #places: Map<TargetPlace, Pick<TargetRef, 'listenerId' | 'ruleId'>>;
  /** What the domain '' is called where it has to have a name. */
  readonly #address: string;
  /** Mark of the targets that are registered: a listener is known by it though another client renames it. */
  readonly #mark: string;
  /** How often a refusal was split. */
  #splits = 0;

  constructor(
    { cloud, calls }: Pick<ControllerDeps, 'cloud'> & { readonly calls: UnresolvedCalls },
    { balancer, listeners }: ObservedLoadBalancer,
    listenerName: string,
  ) {
    this.#cloud = cloud;
    this.#calls = calls;
    this.#id = balancer.loadBalancerId;
    this.#mark = listenerName;
    this.#address = balancer.vips[0] ?? balancer.domain;
    const ours = listeners.filter(({ name }) => name === listenerName);
    this.#listenerIds = new Map(ours.map(({ protocol, port, listenerId }) => [`${protocol}/${port}`, listenerId]));
    this.#places = new Map(
      [...placesOf(listeners, listenerName)].map(([id, place]) => {
        const [listenerId = '', ruleId = ''] = id.split(' ');
        return [place, ruleId === '' ? { listenerId } : { listenerId, ruleId }];
      }),
    );
  }

  /**
   * Registers targets, of which the cloud may refuse some.
   * @throws CloudError
   */
  async register(
    targets: readonly (StepTarget & { readonly weight: number })[],
    context: CallContext,
  ): Promise<readonly Refusal[]> {
    const marked = targets.map((target) => ({ ...this.#refOf(target), tag: this.#mark }));
    const refused = await this.#register(marked, context);
    const byPlace = new Map(targets.map((target) => [targetIdOf(this.#refOf(target)), target]));
    return refused.flatMap(({ targets: its, reason }) =>
      its.flatMap((ref) => {
        const { place, ip, port } = byPlace.get(targetIdOf(ref)) ?? {};
        if (place === undefined || ip === undefined || port === undefined) return [];
        return [{ target: { place, ip, port }, isAlone: its.length === 1, reason }];
      }),
    );
  }

  /** Runs a step and waits until the cloud has done it. @throws CloudError, StepError */
  async run(step: PlainStep, context: CallContext): Promise<void> {
    const { loadBalancers, listeners, targets, groups } = this.#cloud;
    const id = this.#id;
    switch (step.kind) {
      case 'modify':
        return await this.#settle(await loadBalancers.modify(id, step.changes, context), context);
      case 'setSecurityGroups':
        return await loadBalancers.setSecurityGroups(id, step.securityGroupIds, context);
      case 'replacePolicies':
        return await groups.replacePolicies(step.securityGroupId, step.rules, step.version, context);
      case 'deleteSecurityGroup':
        return await deleteGroup(this.#cloud, step.securityGroupId, context);
      case 'createListeners': {
        const { listenerIds } = await this.#make(listeners.create(id, step.spec, context), context);
        for (const [at, { port }] of step.spec.ports.entries()) {
          this.#noteListener(step.spec.protocol, port, listenerIds[at] ?? '');
        }
        return;
      }
      case 'modifyListener':
        return await this.#settle(await listeners.modify(id, step.listenerId, step.changes, context), context);
      case 'setWeights':
        return await this.#settle(await targets.setWeights(id, step.targets.map(this.#refOf), context), context);
      case 'deregister':
        return requireNone(await targets.deregister(id, step.targets.map(this.#refOf), context));
      case 'deleteListeners':
        return await this.#settle(await listeners.delete(id, step.listenerIds, context), context);
      case 'delete':
        return await this.#delete(context);
      default:
        return await this.#runOfRules(step, context);
    }
  }

  async #runOfRules(step: RuleStep, context: CallContext): Promise<void> {
    const { rules, rewrites } = this.#cloud;
    const id = this.#id;
    switch (step.kind) {
      case 'createRules': {
        const listenerId = this.#listenerIdOf(step.listener);
        const { ruleIds } = await this.#make(rules.create(id, listenerId, step.rules, context), context);
        for (const [at, rule] of step.rules.entries())
          this.#places.set(ruleKeyOf(step.listener, rule), { listenerId, ruleId: ruleIds[at] ?? '' });
        return;
      }
      case 'modifyRule': {
        const { listenerId, ruleId } = step.rule;
        return await this.#settle(await rules.modify(id, listenerId, ruleId, step.changes, context), context);
      }
      case 'modifyDomain': {
        const [listenerId, domain] = [this.#listenerIdOf(step.listener), step.domain || this.#address];
        return await this.#settle(await rules.modifyDomain(id, listenerId, domain, step.changes, context), context);
      }
      case 'createRewrites': {
        const spec = {
          sourceListenerId: this.#listenerIdOf(step.source),
          targetListenerId: this.#listenerIdOf(step.target),
          rewrites: step.rewrites.map(({ source, target, sourceDomain, code, takesUrl }) => ({
            ...{ code, takesUrl, sourceDomain: sourceDomain || this.#address },
            ...{ sourceRuleId: this.#ruleIdOf(source), targetRuleId: this.#ruleIdOf(target) },
          })),
        };
        return await this.#settle(await rewrites.create(id, spec, context), context);
      }
      case 'deleteRewrites':
        return await this.#settle(await rewrites.delete(id, step.rewrites, context), context);
      case 'deleteRules': {
        const next = step.newDefaultDomain === '' ? this.#address : step.newDefaultDomain;
        return await this.#settle(await rules.delete(id, step.listenerId, step.ruleIds, context, next), context);
      }
    }
  }

  #noteListener(protocol: string, port: number, listenerId: string): void {
    this.#listenerIds.set(`${protocol}/${port}`, listenerId);
    const key = listenerKeyOf({ protocol, port });
    if (key !== undefined) this.#places.set(key, { listenerId });
  }

  #listenerIdOf(key: RuleListenerKey): string {
    return this.#listenerIds.get(key) ?? '';
  }

  #ruleIdOf(key: RuleKey): string {
    return this.#places.get(key)?.ruleId ?? '';
  }

  /**
   * Registers targets. One that the cloud refuses takes all of its listener with it, so halves are tried without it, with a
   * limit: where all are refused each half would be, down to the last one.
   */
  async #register(targets: readonly TargetSpec[], context: CallContext): Promise<readonly RefusedTargets[]> {
    const refused = await this.#tryRegister(targets, context);
    const results: RefusedTargets[] = [];
    for (const one of refused) {
      const ofListener = targets.filter(({ listenerId }) => listenerId === one.listenerId);
      if (ofListener.length <= 1 || this.#splits >= MAX_SPLITS) {
        results.push(one);
        continue;
      }
      this.#splits += 1;
      const middle = Math.ceil(ofListener.length / 2);
      results.push(...(await this.#register(ofListener.slice(0, middle), context)));
      results.push(...(await this.#register(ofListener.slice(middle), context)));
    }
    return results;
  }

  /** As the port does; an error about the request is a refusal of all of it. */
  async #tryRegister(targets: readonly TargetSpec[], context: CallContext): Promise<readonly RefusedTargets[]> {
    try {
      return await this.#noted(this.#cloud.targets.register(this.#id, targets, context));
    } catch (error) {
      if (!isCloudError(error, 'never') || !error.code.startsWith('InvalidParameter')) throw error;
      const { message: reason } = error;
      const byListener = Map.groupBy(targets, ({ listenerId }) => listenerId);
      return [...byListener].map(([listenerId, its]) => ({ listenerId, targets: its, reason }));
    }
  }

  async #delete(context: CallContext): Promise<void> {
    try {
      await this.#settle(await this.#cloud.loadBalancers.delete(this.#id, context), context);
    } catch (error) {
      if (!isCloudError(error, 'gone')) throw error;
    }
  }

  readonly #refOf = <T extends StepTarget>({ place, ...target }: T) => ({
    ...target,
    ...(this.#places.get(place) ?? { listenerId: '' }),
  });

  /** Waits for what makes something. What it may make later is remembered when it fails. @throws CloudError, StepError */
  async #make<T extends { readonly task: LoadBalancerTask }>(sent: Promise<T>, context: CallContext): Promise<T> {
    const made = await this.#noted(sent);
    this.#require(made.task, await this.#calls.settle(this.#mark, made.task, context));
    return made;
  }

  async #noted<T>(sent: Promise<T>): Promise<T> {
    try {
      return await sent;
    } catch (error) {
      this.#calls.noteFailure(this.#mark, error);
      throw error;
    }
  }

  async #settle(task: LoadBalancerTask, context: CallContext): Promise<void> {
    this.#require(task, await this.#cloud.loadBalancers.settle(task, context));
  }

  #require({ action }: LoadBalancerTask, outcome: LoadBalancerOutcome): void {
    // A task that is not known any more is over: the next comparison shows what it did.
    if (outcome.kind === 'done' || outcome.kind === 'lost') return;
    const how = outcome.kind === 'failed' ? `failed: ${outcome.reason}` : 'takes longer than --cloud-timeout';
    throw new StepError(`${action} of ${this.#id} ${how}`);
  }
}

/** Deletes a security group; one that is gone is a success. @throws CloudError */
export async function deleteGroup(
  { groups }: Pick<ControllerDeps['cloud'], 'groups'>,
  securityGroupId: string,
  context: CallContext,
): Promise<void> {
  try {
    await groups.delete(securityGroupId, context);
  } catch (error) {
    if (!isCloudError(error, 'gone')) throw error;
  }
}

function requireNone(refused: readonly RefusedTargets[]): void {
  if (refused.length > 0) throw new StepError(describeRefused(refused));
}

function describeRefused(refused: readonly RefusedTargets[]): string {
  const [first] = refused;
  const shown = refused.flatMap(({ targets }) => targets.map(({ ip, port }) => `${ip}:${port}`));
  return `the cloud refused ${shown.length} targets of ${first?.listenerId}, as ${shown.slice(0, 3).join(', ')}: ${first?.reason}`;
}
