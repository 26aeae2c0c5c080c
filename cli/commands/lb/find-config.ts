import {
  type ConfigOfOwner,
  type ConfigOwner,
  chooseConfig,
  readConfig,
} from '../../../cloud-controller-manager/service-configs/choose-config.ts';
import type { LbFacts } from './lb-facts.ts';

/** Finds what the TkeServiceConfig of a Service or Ingress says. One that the controller has still to make says nothing. */
export function findConfig(
  owner: ConfigOwner,
  configs: LbFacts['configs'],
): Exclude<ConfigOfOwner, { readonly kind: 'starting' }> {
  const read = readConfig(owner, chooseConfig(owner), (key) => {
    if (configs.kind === 'unknown') return { kind: 'unusable', why: configs.why };
    return configs.value.get(key) ?? { kind: 'absent' };
  });
  return read.kind === 'starting' ? { kind: 'unknown', why: 'TkeServiceConfigs are not read' } : read;
}
