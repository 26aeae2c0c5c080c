import type { IpamdConfig } from './options.ts';

/** Returns the ConfigMap with the subnets as the object of an event: there people look for problems of ipamd's setup. */
export function involvedConfigMap({ namespace, configMap: name }: Pick<IpamdConfig, 'namespace' | 'configMap'>) {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name };
}
