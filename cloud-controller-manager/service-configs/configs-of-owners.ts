import type { TkeServiceConfig } from '../../crd/tke-service-config.ts';
import { Contests, contestText } from '../../kube/contest.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { apiVersionOf, INGRESSES, SERVICES, TKE_SERVICE_CONFIGS } from '../../kube/resource-types.ts';
import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type ConfigOfOwner, type ConfigOwner, chooseConfig, readConfig } from './choose-config.ts';
import type { ConfigFollower } from './follow-configs.ts';
import type { LoadBalancerConfig } from './l4-settings.ts';
import { planAutoListeners } from './plan-auto-listeners.ts';
import { planAutoRules } from './plan-auto-rules.ts';

/** An owner with the listeners that a configuration is made for. */
type ConfigUser = ConfigOwner &
  (
    | {
        readonly kind: 'service';
        readonly listeners: readonly { readonly protocol: 'TCP' | 'UDP'; readonly port: number }[];
      }
    | { readonly kind: 'ingress'; readonly listeners: readonly DesiredRuleListener[] }
  );

const TYPES: Readonly<Record<ConfigOwner['kind'], ResourceType>> = { service: SERVICES, ingress: INGRESSES };

type ConfigDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'events'>;

/** Finds the TkeServiceConfigs of Services and Ingresses, and makes those that are asked for. */
export class ConfigsOfOwners {
  readonly #deps: ConfigDeps;
  readonly #configs: Pick<ConfigFollower, 'find'>;
  /** By uid of the owner. */
  readonly #contests = new Contests();

  constructor(deps: ConfigDeps, configs: Pick<ConfigFollower, 'find'>) {
    this.#deps = deps;
    this.#configs = configs;
  }

  /**
   * Finds what holds for an owner. One that is made is brought in line with its listeners, rarely where another client keeps
   * changing it back. @throws KubeError
   */
  async find(user: ConfigUser, signal: AbortSignal): Promise<ConfigOfOwner> {
    const choice = chooseConfig(user);
    const read = readConfig(user, choice, (key) => this.#configs.find(key));
    if (choice.kind !== 'made' || read.kind !== 'known') return read;
    const { key } = choice;
    const found = this.#configs.find(key);
    const planned = planAuto(user, read.config);
    if (planned === undefined) return read;
    const present = found.kind === 'known' ? found.config : undefined;
    const waitMs = this.#waitMs(user, key, present, read.config);
    if (waitMs > 0) return { ...read, afterMs: waitMs };
    const refusal = await this.#write(user, key, present, planned, signal);
    return refusal === undefined ? read : { kind: 'unknown', why: refusal };
  }

  /** Asks how long the configuration of an owner is not to be written; reports that it is contested. */
  #waitMs(
    user: ConfigUser,
    key: string,
    present: TkeServiceConfig | undefined,
    config: LoadBalancerConfig | undefined,
  ): number {
    const { clock, events } = this.#deps;
    const seen = { uid: user.uid, resourceVersion: present?.metadata.resourceVersion };
    const isUndone = this.#contests.valueOf(user.uid) !== textOf(config);
    const { waitMs, isNew } = this.#contests.ask(user.uid, isUndone, seen, clock.monotonicMs());
    if (isNew) {
      const message = contestText(`the TkeServiceConfig ${key}`);
      events.record({
        involved: involvedObject(TYPES[user.kind], user),
        type: 'Warning',
        reason: 'FieldContested',
        message,
      });
    }
    return waitMs;
  }

  #noteWritten(uid: string, { metadata }: KubeObject, loadBalancer: LoadBalancerConfig): void {
    const version = { uid, resourceVersion: metadata.resourceVersion };
    this.#contests.note(uid, textOf(loadBalancer), version, this.#deps.clock.monotonicMs());
  }

  /** @returns why it could not be written, for people */
  async #write(
    { kind, namespace, name, uid }: ConfigUser,
    key: string,
    present: TkeServiceConfig | undefined,
    loadBalancer: LoadBalancerConfig,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { kube } = this.#deps;
    const itsName = key.slice(namespace.length + 1);
    const spec = { loadBalancer };
    try {
      if (present === undefined) {
        const type = TYPES[kind];
        const owner = { apiVersion: apiVersionOf(type), kind: type.kind, name, uid };
        const metadata = { namespace, name: itsName, ownerReferences: [owner] };
        const made = { apiVersion: apiVersionOf(TKE_SERVICE_CONFIGS), kind: TKE_SERVICE_CONFIGS.kind };
        const written = await kube.create(TKE_SERVICE_CONFIGS, { ...made, metadata, spec }, signal);
        this.#noteWritten(uid, written, loadBalancer);
      } else {
        const { uid: itsUid, resourceVersion } = present.metadata;
        const body = { metadata: { uid: itsUid, resourceVersion }, spec };
        const ref = { namespace, name: itsName };
        const written = await kube.patch(TKE_SERVICE_CONFIGS, ref, { kind: 'merge', body }, signal);
        this.#noteWritten(uid, written, loadBalancer);
      }
      return undefined;
    } catch (error) {
      // The cache will show what another writer wrote.
      if (isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS')) return undefined;
      if (isKubeError(error, 'FORBIDDEN', 'INVALID', 'NOT_FOUND'))
        return `the TkeServiceConfig ${key} cannot be written: ${error.message}`;
      throw error;
    }
  }
}

function textOf(config: LoadBalancerConfig | undefined): string {
  return JSON.stringify([config?.l4Listeners, config?.l7Listeners]);
}

/** @returns what is written; undefined: nothing changes */
function planAuto(user: ConfigUser, present: LoadBalancerConfig | undefined): LoadBalancerConfig | undefined {
  if (user.kind === 'service') {
    const l4Listeners = planAutoListeners(user.listeners, present?.l4Listeners);
    return l4Listeners === undefined ? undefined : { l4Listeners };
  }
  const l7Listeners = planAutoRules(user.listeners, present?.l7Listeners);
  return l7Listeners === undefined ? undefined : { l7Listeners };
}
