import type { TkeServiceConfig } from '../../crd/tke-service-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { OWNER_NAMES } from '../balancers/balancer-owner.ts';
import type { LoadBalancerConfig } from './l4-settings.ts';

/** The Service or Ingress that names a TkeServiceConfig, or wants one to be made. */
export type ConfigOwner = {
  readonly kind: 'service' | 'ingress';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The name of a TkeServiceConfig. */
  readonly serviceConfig?: string;
  /** Whether one is made. */
  readonly serviceConfigAuto?: boolean;
};

/** Which TkeServiceConfig an owner has; the key is `namespace/name`. `why` is for people. */
type ConfigChoice =
  | { readonly kind: 'none' }
  | { readonly kind: 'named' | 'made'; readonly key: string }
  | { readonly kind: 'refused'; readonly why: string };

/** A TkeServiceConfig that is named. `starting`: they are being read. `unusable`: `why` is for people. */
export type FoundConfig =
  | { readonly kind: 'known'; readonly config: TkeServiceConfig }
  | { readonly kind: 'absent' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'unusable'; readonly why: string };

/** `unknown`: there should be one, and what it says is not known. `starting`: they are being read. `why` is for people. */
export type ConfigOfOwner =
  /** `afterMs`: when it is to be written, as another client writes it too. */
  | { readonly kind: 'known'; readonly config: LoadBalancerConfig | undefined; readonly afterMs?: number }
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'starting' };

/** Chooses the TkeServiceConfig of an owner. */
export function chooseConfig({ kind, namespace, name, serviceConfig, serviceConfigAuto }: ConfigOwner): ConfigChoice {
  if (serviceConfigAuto === true) {
    if (serviceConfig === undefined) return { kind: 'made', key: `${namespace}/${autoConfigName(kind, name)}` };
    const why = 'both annotations tke-service-config and tke-service-config-auto are set; remove one of them';
    return { kind: 'refused', why };
  }
  if (serviceConfig === undefined) return { kind: 'none' };
  if (!isAutoConfigName(serviceConfig)) return { kind: 'named', key: `${namespace}/${serviceConfig}` };
  const why = `the name ${serviceConfig} is kept for configurations that are made; choose another one`;
  return { kind: 'refused', why };
}

/** Reports whether an owner has the TkeServiceConfig of a `namespace/name`; '' is any. */
export function usesConfig(owner: ConfigOwner, key: string): boolean {
  const choice = chooseConfig(owner);
  return 'key' in choice && (key === '' || key === choice.key);
}

/** Returns what holds for an owner. One that is to be made, and is not there yet, says nothing. */
export function readConfig(
  { kind, uid }: Pick<ConfigOwner, 'kind' | 'uid'>,
  choice: ConfigChoice,
  find: (key: string) => FoundConfig,
): ConfigOfOwner {
  if (choice.kind === 'none') return { kind: 'known', config: undefined };
  if (choice.kind === 'refused') return { kind: 'unknown', why: choice.why };
  const { key } = choice;
  const found = find(key);
  if (found.kind === 'starting') return found;
  if (found.kind === 'unusable') return unknown(`the TkeServiceConfig ${key} is not used: ${found.why}`);
  if (found.kind === 'absent')
    return choice.kind === 'made'
      ? { kind: 'known', config: undefined }
      : unknown(`there is no TkeServiceConfig ${key}; create it`);
  if (choice.kind === 'made' && !isOf(found.config, uid))
    return unknown(`the TkeServiceConfig ${key} was not made for this ${OWNER_NAMES[kind].object}; rename it`);
  return { kind: 'known', config: found.config.spec?.loadBalancer };
}

function unknown(why: string): ConfigOfOwner {
  return { kind: 'unknown', why };
}

function isOf({ object }: TkeServiceConfig, uid: string): boolean {
  const { ownerReferences } = (object as KubeObject).metadata;
  return ownerReferences?.some((owner) => owner.uid === uid) ?? false;
}

/** Returns the name of the TkeServiceConfig that is made for a Service or an Ingress. It is the product's. */
export function autoConfigName(kind: 'service' | 'ingress', name: string): string {
  return `${name}-auto-${kind}-config`;
}

/** Reports whether a name is kept for configurations that are made. */
export function isAutoConfigName(name: string): boolean {
  return name.endsWith(autoConfigName('service', '')) || name.endsWith(autoConfigName('ingress', ''));
}
