import { isIP } from 'node:net';
import { isEqual, isObject, type JsonObject, type KubeObject } from '../object.ts';
import type { Strategy } from './api-resource.ts';
import { type Cause, invalidValue, requiredValue, unsupportedValue } from './causes.ts';

/** What the API server does with Ingresses: checks, and a status that the status path alone changes. */
export const INGRESS_STRATEGY: Strategy = {
  prepareCreate: (ingress) => ({ ...ingress, status: { loadBalancer: {} } }),
  validate: (ingress, old) => [
    ...(old === undefined ? classFaults(ingress) : []),
    ...specFaults(fieldOf(ingress, 'spec')),
  ],
};

/** What the API server does with IngressClasses: a controller that stays. */
export const INGRESS_CLASS_STRATEGY: Strategy = {
  validate: (ingressClass, old) => {
    const { controller } = fieldOf(ingressClass, 'spec') as { readonly controller?: unknown };
    if (typeof controller !== 'string' || controller === '') return [requiredValue('spec.controller')];
    const before = old === undefined ? controller : fieldOf(old, 'spec')['controller'];
    const isChanged = !isEqual(controller, before);
    return [
      ...(isChanged ? [invalidValue('spec.controller', controller, 'field is immutable')] : []),
      ...(CONTROLLER.test(controller)
        ? []
        : [invalidValue('spec.controller', controller, 'must be a domain-prefixed path (such as "acme.io/foo")')]),
    ];
  },
};

const CONTROLLER = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD_RULE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const BAD_PARTS = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_ENDS = ['/..', '/.'];

function classFaults(ingress: KubeObject): readonly Cause[] {
  const { ingressClassName } = fieldOf(ingress, 'spec') as { readonly ingressClassName?: unknown };
  const annotated = ingress.metadata.annotations?.['kubernetes.io/ingress.class'];
  if (annotated === undefined || typeof ingressClassName !== 'string' || annotated === ingressClassName) return [];
  const place = 'annotations.kubernetes.io/ingress.class';
  return [invalidValue(place, annotated, 'must match `ingressClassName` when both are specified')];
}

function specFaults(spec: JsonObject): readonly Cause[] {
  const rules = objectsIn(spec['rules']);
  const { defaultBackend } = spec as { readonly defaultBackend?: unknown };
  if (rules.length === 0 && defaultBackend === undefined)
    return [invalidValue('spec', spec, 'either `defaultBackend` or `rules` must be specified')];
  return [
    ...(isObject(defaultBackend) ? backendFaults(defaultBackend, 'spec.defaultBackend') : []),
    ...rules.flatMap((rule, index) => [
      ...hostFaults(rule['host'], `spec.rules[${index}].host`),
      ...(rule['http'] === undefined ? [] : pathsFaults(fieldOf(rule, 'http'), `spec.rules[${index}].http.paths`)),
    ]),
    ...objectsIn(spec['tls']).flatMap((entry, index) =>
      (Array.isArray(entry['hosts']) ? entry['hosts'] : []).flatMap((host, nth) =>
        nameFaults(host, `spec.tls[${index}].hosts[${nth}]`),
      ),
    ),
  ];
}

function hostFaults(host: unknown, at: string): readonly Cause[] {
  if (typeof host !== 'string' || host === '') return [];
  if (isIP(host) > 0) return [invalidValue(at, host, 'must be a DNS name, not an IP address')];
  return nameFaults(host, at);
}

function nameFaults(host: unknown, at: string): readonly Cause[] {
  const name = String(host);
  if (name.includes('*'))
    return name.startsWith('*.') && NAME.test(name.slice(2)) ? [] : [invalidValue(at, name, WILDCARD_RULE)];
  return NAME.test(name) ? [] : [invalidValue(at, name, NAME_RULE)];
}

function pathsFaults(http: JsonObject, at: string): readonly Cause[] {
  const paths = objectsIn(http['paths']);
  if (paths.length === 0) return [requiredValue(at)];
  return paths.flatMap((path, index) => [
    ...pathFaults(path, `${at}[${index}]`),
    ...backendFaults(fieldOf(path, 'backend'), `${at}[${index}].backend`),
  ]);
}

function pathFaults(one: JsonObject, at: string): readonly Cause[] {
  const { path = '', pathType } = one as { readonly path?: unknown; readonly pathType?: unknown };
  const text = String(path);
  if (pathType === undefined) return [requiredValue(`${at}.pathType`, 'pathType must be specified')];
  if (!PATH_TYPES.includes(String(pathType))) return [unsupportedValue(`${at}.pathType`, pathType, PATH_TYPES)];
  if (pathType === 'ImplementationSpecific' && text === '') return [];
  if (!text.startsWith('/')) return [invalidValue(`${at}.path`, text, 'must be an absolute path')];
  if (pathType === 'ImplementationSpecific') return [];
  return [
    ...BAD_PARTS.filter((part) => text.includes(part)).map((part) =>
      invalidValue(`${at}.path`, text, `must not contain '${part}'`),
    ),
    ...BAD_ENDS.filter((end) => text.endsWith(end)).map((end) =>
      invalidValue(`${at}.path`, text, `cannot end with '${end}'`),
    ),
  ];
}

function backendFaults(backend: JsonObject, at: string): readonly Cause[] {
  const has = (key: string): boolean => isObject(backend[key]);
  if (has('resource') && has('service')) return [invalidValue(at, '', 'cannot set both resource and service backends')];
  if (has('resource')) return [];
  if (!has('service')) return [invalidValue(at, '', 'resource or service backend is required')];
  const service = fieldOf(backend, 'service');
  const { name, number } = fieldOf(service, 'port') as { readonly name?: unknown; readonly number?: unknown };
  const hasName = typeof name === 'string' && name !== '';
  const hasNumber = typeof number === 'number' && number !== 0;
  return [
    ...(service['name'] ? [] : [requiredValue(`${at}.service.name`)]),
    ...(hasName && hasNumber ? [invalidValue(at, '', 'cannot set both port name & port number')] : []),
    ...(hasName || hasNumber ? [] : [requiredValue(at, 'port name or number is required')]),
    ...(hasNumber && (number < 1 || number > 65_535)
      ? [invalidValue(`${at}.service.port.number`, number, 'must be between 1 and 65535, inclusive')]
      : []),
  ];
}

function fieldOf(object: JsonObject, field: string): JsonObject {
  const { [field]: value } = object;
  return isObject(value) ? value : {};
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
