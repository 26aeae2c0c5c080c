import type { StaticIpRule } from '../crd/select-static-ip-config.ts';
import { staticIpConfig } from '../crd/static-ip-config.ts';
import type { KubeClient, KubeObject } from '../kube/kube-client.ts';
import { INGRESSES, SERVICES, STATIC_IP_CONFIGS } from '../kube/resource-types.ts';
import type { Clock } from '../runtime/clock.ts';
import { decodeOrThrow } from '../runtime/decode.ts';
import type { Logger } from '../runtime/log.ts';
import { admittedPod } from './admitted-pod.ts';
import { answerReview, type DecideReview } from './answer-review.ts';
import { backendPod } from './backend-pod.ts';
import { decideAdmission } from './decide-admission.ts';
import { decideGate } from './decide-gate.ts';
import { type DirectIngress, readDirectIngress, readSelectingService, type SelectingService } from './direct-access.ts';
import { type FollowedObjects, followObjects, NO_OBJECTS } from './follow-objects.ts';
import type { WebhookConfig } from './options.ts';
import { type AnswerSent, GATE_PATH, REVIEW_PATH } from './serve-reviews.ts';

/** What the answers depend on; without a client nothing is followed. */
type ReviewsRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly kube: KubeClient | undefined;
};

/** Who answers reviews, by path, and the objects that the answers depend on. */
type Reviews = {
  readonly answers: ReadonlyMap<string, AnswerSent>;
  readonly rules: FollowedObjects<StaticIpRule>;
  readonly services: FollowedObjects<SelectingService>;
  readonly ingresses: FollowedObjects<DirectIngress>;
};

/** Opens the answers to reviews. They are complete once what they depend on runs and has no problem. */
export function openReviews(config: WebhookConfig, runtime: ReviewsRuntime): Reviews {
  const rules = followRules(config, runtime);
  const services = followServices(config, runtime);
  const ingresses = followIngresses(config, runtime);
  const answers = new Map([
    [REVIEW_PATH, (sent: unknown) => answerReview(sent, requestDecider(config, rules))],
    [GATE_PATH, (sent: unknown) => answerReview(sent, gateDecider(config, services, ingresses))],
  ]);
  return { answers, rules, services, ingresses };
}

/** Requests of addresses, and static addresses. */
function requestDecider(
  { defaultNetwork, ipamdNamespace }: WebhookConfig,
  rules: FollowedObjects<StaticIpRule>,
): DecideReview {
  return (object, namespace, faults) => {
    const pod = admittedPod(object, 'request.object', faults);
    const namespaces = new Set([namespace, ipamdNamespace]);
    const ofPod = namespaces.values().flatMap((one) => rules.byIndex(BY_NAMESPACE, one));
    const context = { namespace, defaultNetwork, rules: ofPod, clusterNamespace: ipamdNamespace };
    return pod && decideAdmission(pod, context);
  };
}

/** Readiness gates, and preStop sleeps. */
function gateDecider(
  { preStopSleep }: WebhookConfig,
  services: FollowedObjects<SelectingService>,
  ingresses: FollowedObjects<DirectIngress>,
): DecideReview {
  return (object, namespace, faults) => {
    const pod = backendPod(object, 'request.object', faults);
    const ofPods = services
      .byIndex(BY_NAMESPACE, namespace)
      .values()
      .filter(({ name, isDirect }) => isDirect || ingresses.hasAny(BY_SERVICE, `${namespace}/${name}`));
    const context = { services: ofPods, hasPreStopSleep: preStopSleep };
    return pod && decideGate(pod, context);
  };
}

/** Opens the informer of StaticIPConfigs. */
function followRules(
  { staticIpConfigs }: WebhookConfig,
  { kube, clock, log, random }: ReviewsRuntime,
): FollowedObjects<StaticIpRule> {
  if (!staticIpConfigs || kube === undefined) return NO_OBJECTS;
  return followObjects<StaticIpRule>({
    ...{ what: 'StaticIPConfigs', client: kube, clock, log, random },
    onRefused: (error) =>
      log.error('StaticIPConfigs cannot be read and are left out: grant list and watch, or --static-ip-configs=false', {
        error,
      }),
    type: STATIC_IP_CONFIGS,
    decode: readRule,
    indexes: { [BY_NAMESPACE]: ({ metadata }) => (metadata.namespace === undefined ? [] : [metadata.namespace]) },
    bounds: WEBHOOK_BOUNDS.rules,
  });
}

/** Reads what selects Pods: addresses, of which there may be thousands, are ipamd's. */
function readRule(object: KubeObject): StaticIpRule {
  const { metadata, spec = {} } = decodeOrThrow(staticIpConfig, object, 'StaticIPConfig');
  const { name, namespace } = metadata;
  const { ips: _ips, subnetIDs: _subnetIds, ...selecting } = spec;
  return { metadata: { name, ...(namespace !== undefined && { namespace }) }, spec: selecting };
}

const KIB = 1_024;

/** What is kept of the objects of tenants. Without one that is too large, Pods are admitted as if there were none. */
const WEBHOOK_BOUNDS = {
  /** All count: each look compares a Pod with every rule of its namespace. */
  rules: { objectBytes: 64 * KIB, namespaceBytes: 4_096 * KIB, smallBytes: 0 },
  /** A Pod has to have all the labels of a selector. */
  services: { objectBytes: 64 * KIB, namespaceBytes: 8_192 * KIB },
  /** Five hundred Services. */
  ingresses: { objectBytes: 256 * KIB, namespaceBytes: 32_768 * KIB, smallBytes: 4 * KIB },
} as const;

const BY_NAMESPACE = 'namespace';
/** `namespace/name`: a Pod is compared with the Services of its namespace, however many paths Ingresses lead to them by. */
const BY_SERVICE = 'service';

/** Opens the informer of Services: those with direct access, and those that Ingresses may lead to. */
function followServices(
  { readinessGates, loadBalancerClass }: WebhookConfig,
  { kube, clock, log, random }: ReviewsRuntime,
): FollowedObjects<SelectingService> {
  if (!readinessGates || kube === undefined) return NO_OBJECTS;
  return followObjects<SelectingService>({
    ...{ what: 'Services', client: kube, type: SERVICES, clock, log, random },
    onRefused: (error) =>
      log.error(
        'Services cannot be read and Pods get no readiness gates: grant list and watch, or --readiness-gates=false',
        {
          error,
        },
      ),
    decode: (object) => readSelectingService(object, loadBalancerClass),
    indexes: { [BY_NAMESPACE]: ({ namespace }) => [namespace] },
    bounds: WEBHOOK_BOUNDS.services,
  });
}

/** Opens the informer of Ingresses, of which only those with direct access are kept. */
function followIngresses(
  { readinessGates }: WebhookConfig,
  { kube, clock, log, random }: ReviewsRuntime,
): FollowedObjects<DirectIngress> {
  if (!readinessGates || kube === undefined) return NO_OBJECTS;
  return followObjects<DirectIngress>({
    ...{ what: 'Ingresses', client: kube, type: INGRESSES, clock, log, random },
    onRefused: (error) =>
      log.error('Ingresses cannot be read and Pods behind them alone get no readiness gates: grant list and watch', {
        error,
      }),
    decode: readDirectIngress,
    indexes: { [BY_SERVICE]: ({ namespace, services }) => [...services].map((name) => `${namespace}/${name}`) },
    bounds: WEBHOOK_BOUNDS.ingresses,
  });
}
