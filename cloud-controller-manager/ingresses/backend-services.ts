import type { KubeObject } from '../../kube/kube-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { readAnnotations } from './read-annotations.ts';
import { type IngressSpec, type RuleBackend, readIngressHead, readIngressSpec } from './read-ingress.ts';
import type { IngressSettings } from './served-annotations.ts';

/** Lists the backends of an Ingress, of its spec and of its annotations. */
export function backendsOf(
  { defaultBackend, rules }: IngressSpec,
  { httpRules = [], httpsRules = [] }: Pick<IngressSettings, 'httpRules' | 'httpsRules'>,
): readonly RuleBackend[] {
  const ofRules = [...rules, ...httpRules, ...httpsRules].map(({ backend }) => backend);
  return defaultBackend === undefined ? ofRules : [defaultBackend, ...ofRules];
}

/** Returns the Services that an Ingress leads to, `namespace/name` each; none of one whose spec cannot be read. */
export function backendServicesOf(object: KubeObject): readonly string[] {
  const { namespace, annotations } = readIngressHead(object);
  try {
    const backends = backendsOf(readIngressSpec(object), readAnnotations(annotations).settings);
    return [...new Set(backends.map(({ service }) => `${namespace}/${service}`))];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [];
  }
}
