import { isEqual, isObject, type JsonObject, type KubeObject, without } from '../object.ts';
import type { Strategy } from './api-resource.ts';
import { type Cause, forbiddenValue, requiredValue } from './causes.ts';

const DEFAULT_GRACE_SECONDS = 30;

/** What the API server does with Pods: defaults, an immutable spec, graceful deletion. */
export const POD_STRATEGY: Strategy = {
  prepareCreate: (pod) => {
    const spec = withDefaults(specOf(pod));
    return { ...pod, spec: { ...AT_ADMISSION, ...spec }, status: { phase: 'Pending', qosClass: qosClass(spec) } };
  },
  prepareUpdate: (pod) => ({ ...pod, spec: withDefaults(specOf(pod)) }),
  validate: (pod, old) => (old === undefined ? createFaults(pod) : updateFaults(pod, old)),
  graceSeconds: (pod, asked) => {
    const { phase } = statusOf(pod) as { phase?: unknown };
    // Nobody has to stop containers of a Pod that is on no node, or has ended.
    if (!specOf(pod)['nodeName'] || phase === 'Succeeded' || phase === 'Failed') return 0;
    return asked ?? Number(specOf(pod)['terminationGracePeriodSeconds'] ?? DEFAULT_GRACE_SECONDS);
  },
};

const UNREACHABLE_SECONDS = 300;

/** What the admission plugins that are on by default add. */
const AT_ADMISSION = {
  priority: 0,
  preemptionPolicy: 'PreemptLowerPriority',
  tolerations: ['not-ready', 'unreachable'].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: UNREACHABLE_SECONDS,
  })),
};

function specOf(pod: KubeObject): JsonObject {
  return isObject(pod['spec']) ? pod['spec'] : {};
}

function statusOf(pod: KubeObject): JsonObject {
  return isObject(pod['status']) ? pod['status'] : {};
}

function withDefaults(spec: JsonObject): JsonObject {
  const account = spec['serviceAccountName'];
  return {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: DEFAULT_GRACE_SECONDS,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
    ...spec,
    ...(account === undefined ? {} : { serviceAccount: account }),
    ...Object.fromEntries(
      ['containers', 'initContainers'].flatMap((key) =>
        Array.isArray(spec[key]) ? [[key, spec[key].map(containerWithDefaults)]] : [],
      ),
    ),
  };
}

function containerWithDefaults(container: unknown): unknown {
  if (!isObject(container)) return container;
  const image = String(container['image'] ?? '');
  const isLatest = image.endsWith(':latest') || !/[:@]/.test(image.slice(image.lastIndexOf('/') + 1));
  return {
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: isLatest ? 'Always' : 'IfNotPresent',
    ...container,
    ...(isObject(container['resources']) ? { resources: withRequests(container['resources']) } : {}),
    ...(Array.isArray(container['ports']) ? { ports: container['ports'].map(portWithProtocol) } : {}),
  };
}

/** What is limited and not requested is requested as much. */
function withRequests(resources: JsonObject): JsonObject {
  const limits = isObject(resources['limits']) ? resources['limits'] : {};
  const requests = isObject(resources['requests']) ? resources['requests'] : {};
  return Object.keys(limits).length === 0 ? resources : { ...resources, requests: { ...limits, ...requests } };
}

function portWithProtocol(port: unknown): unknown {
  return isObject(port) ? { protocol: 'TCP', ...port } : port;
}

function qosClass(spec: JsonObject): string {
  const containers = Array.isArray(spec['containers']) ? spec['containers'].filter(isObject) : [];
  const of = (container: JsonObject, kind: string) => {
    const resources = isObject(container['resources']) ? container['resources'] : {};
    const all = isObject(resources[kind]) ? resources[kind] : {};
    return Object.fromEntries(Object.entries(all).filter(([name]) => name === 'cpu' || name === 'memory'));
  };
  const asks = containers.some((one) => Object.keys({ ...of(one, 'requests'), ...of(one, 'limits') }).length > 0);
  if (!asks) return 'BestEffort';
  const isGuaranteed = containers.every((one) => {
    const limits = of(one, 'limits');
    return Object.keys(limits).length === 2 && isEqual(limits, { ...limits, ...of(one, 'requests') });
  });
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function createFaults(pod: KubeObject): readonly Cause[] {
  const { containers } = specOf(pod) as { containers?: unknown };
  if (!Array.isArray(containers) || containers.length === 0) return [requiredValue('spec.containers')];
  return containers.flatMap((container: unknown, index) => {
    const has = (key: string) => isObject(container) && typeof container[key] === 'string' && container[key] !== '';
    return ['name', 'image'].filter((key) => !has(key)).map((key) => requiredValue(`spec.containers[${index}].${key}`));
  });
}

const MAY_CHANGE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

function updateFaults(pod: KubeObject, old: KubeObject): readonly Cause[] {
  return isEqual(fixedSpec(pod), fixedSpec(old)) ? [] : [forbiddenValue('spec', MAY_CHANGE)];
}

function fixedSpec(pod: KubeObject): JsonObject {
  const spec = without(specOf(pod), 'activeDeadlineSeconds', 'tolerations');
  const withoutImages = (value: unknown) =>
    Array.isArray(value) ? value.map((one) => (isObject(one) ? without(one, 'image') : one)) : value;
  return {
    ...spec,
    containers: withoutImages(spec['containers']),
    initContainers: withoutImages(spec['initContainers']),
  };
}
