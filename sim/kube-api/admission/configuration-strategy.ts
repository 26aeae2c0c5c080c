import { ApiError } from '../api-error.ts';
import type { JsonObject, KubeObject } from '../object.ts';
import type { Strategy } from '../resources/api-resource.ts';
import { type Cause, invalidValue, requiredValue } from '../resources/causes.ts';
import { objectsIn, partOf } from './webhook.ts';

/** What the API server does with configurations of webhooks: defaults and checks. */
export const WEBHOOK_CONFIGURATION_STRATEGY: Strategy = {
  prepareCreate: withDefaults,
  prepareUpdate: withDefaults,
  validate: (configuration) => {
    const hooks = objectsIn(configuration['webhooks']);
    for (const hook of hooks) requireSimulated(hook);
    return hooks.flatMap((hook, index) => faultsOf(hook, `webhooks[${index}]`));
  },
};

function withDefaults(configuration: KubeObject): KubeObject {
  const { webhooks } = configuration as { readonly webhooks?: unknown };
  if (webhooks === undefined) return configuration;
  return { ...configuration, webhooks: objectsIn(webhooks).map(hookWithDefaults) };
}

function hookWithDefaults(hook: JsonObject): JsonObject {
  const client = partOf(hook, 'clientConfig');
  const service = client['service'] === undefined ? {} : { service: { port: 443, ...partOf(client, 'service') } };
  return {
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    reinvocationPolicy: 'Never',
    timeoutSeconds: 10,
    ...hook,
    clientConfig: { ...client, ...service },
    rules: objectsIn(hook['rules']).map((rule) => ({ scope: '*', ...rule })),
  };
}

const MOST_SECONDS = 30;

function faultsOf(hook: JsonObject, at: string): readonly Cause[] {
  const { name, sideEffects, admissionReviewVersions, timeoutSeconds } = hook as Readonly<Record<string, unknown>>;
  const client = partOf(hook, 'clientConfig');
  const segments = String(name).split('.');
  const seconds = Number(timeoutSeconds);
  return [
    ...(segments.length >= 3 && !segments.includes('')
      ? []
      : [invalidValue(`${at}.name`, name, 'should be a domain with at least three segments separated by dots')]),
    ...(sideEffects === 'None' || sideEffects === 'NoneOnDryRun'
      ? []
      : [requiredValue(`${at}.sideEffects`, 'must specify one of None, NoneOnDryRun')]),
    ...(Array.isArray(admissionReviewVersions) && admissionReviewVersions.length > 0
      ? []
      : [requiredValue(`${at}.admissionReviewVersions`, 'must specify one of v1, v1beta1')]),
    ...(seconds >= 1 && seconds <= MOST_SECONDS
      ? []
      : [invalidValue(`${at}.timeoutSeconds`, seconds, 'the timeout value must be between 1 and 30 seconds')]),
    ...((client['url'] === undefined) !== (client['service'] === undefined)
      ? []
      : [requiredValue(`${at}.clientConfig`, 'exactly one of url or service is required')]),
    ...urlFaults(client['url'], `${at}.clientConfig.url`),
  ];
}

function urlFaults(url: unknown, at: string): readonly Cause[] {
  if (url === undefined || String(url).startsWith('https://')) return [];
  return [invalidValue(at, url, `'https' is the only allowed URL scheme; desired format: https://host[/path]`)];
}

/** Refuses what the real server does and this one does not. */
function requireSimulated(hook: JsonObject): void {
  const operations = objectsIn(hook['rules']).flatMap(({ operations: all }) => (Array.isArray(all) ? all : []));
  const other = operations.find((one) => one !== 'CREATE');
  if (other !== undefined) throw notSimulated(`webhooks for ${String(other)}`);
  if (hook['matchConditions'] !== undefined) throw notSimulated('matchConditions');
  if (partOf(hook, 'clientConfig')['service'] !== undefined) throw notSimulated('webhooks behind a Service');
}

function notSimulated(what: string): ApiError {
  return new ApiError(501, '', `this test API server has no ${what}`);
}
