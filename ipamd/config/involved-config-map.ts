import type { InvolvedObject } from '../../kube/events/event-object.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import type { IpamdConfig } from './options.ts';

/** Returns the ConfigMap with the subnets as the object of an event: there people look for problems of ipamd's setup. */
export function involvedConfigMap(
  { namespace, configMap: name }: Pick<IpamdConfig, 'namespace' | 'configMap'>,
  uid?: string,
): InvolvedObject {
  return involvedObject(CONFIG_MAPS, { namespace, name, uid });
}
