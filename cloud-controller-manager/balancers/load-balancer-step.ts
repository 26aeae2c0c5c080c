import type { ListenerCertificate } from '../../cloud/certificates.ts';
import type { IngressRule } from '../../cloud/cloud.ts';
import type { ListenerSettings, ListenerSpec } from '../../cloud/listeners.ts';
import type { LoadBalancerChanges, LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { Rewrite } from '../../cloud/rewrites.ts';
import type { RuleSettings, RuleSpec } from '../../cloud/rules.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';
import type { RuleKey, RuleListenerKey, TargetPlace } from './target-place.ts';

/** A target of a listener or rule that may be still to be created. */
export type StepTarget = {
  readonly place: TargetPlace;
  readonly ip: string;
  readonly port: number;
  readonly instanceId?: string;
};

/** One change of a load balancer: one call of the cloud. */
export type LoadBalancerStep =
  | { readonly kind: 'create'; readonly spec: Omit<LoadBalancerSpec, 'clientToken'> }
  | { readonly kind: 'createSecurityGroup'; readonly spec: SecurityGroupSpec }
  | ContentStep;

/** One change of a load balancer that is there. Of targets that are registered the cloud may refuse some. */
export type ContentStep =
  | { readonly kind: 'register'; readonly targets: readonly (StepTarget & { readonly weight: number })[] }
  | PlainStep;

/** One change of a load balancer that is made as a whole. */
export type PlainStep =
  | { readonly kind: 'modify'; readonly changes: LoadBalancerChanges }
  | { readonly kind: 'setSecurityGroups'; readonly securityGroupIds: readonly string[] }
  | {
      readonly kind: 'replacePolicies';
      readonly securityGroupId: string;
      readonly rules: readonly IngressRule[];
      readonly version: string;
    }
  | { readonly kind: 'deleteSecurityGroup'; readonly securityGroupId: string }
  | CreateListenersStep
  | {
      readonly kind: 'modifyListener';
      readonly listenerId: string;
      readonly changes: ListenerSettings & { readonly name?: string };
    }
  | { readonly kind: 'setWeights'; readonly targets: readonly (StepTarget & { readonly weight: number })[] }
  | { readonly kind: 'deregister'; readonly targets: readonly StepTarget[] }
  | { readonly kind: 'deleteListeners'; readonly listenerIds: readonly string[] }
  | RuleStep
  | { readonly kind: 'delete' };

/** Makes listeners with the same settings. */
export type CreateListenersStep = { readonly kind: 'createListeners'; readonly spec: ListenerSpec };

/** One change of the rules of a listener of layer 7, or of redirects between them. */
export type RuleStep =
  | { readonly kind: 'createRules'; readonly listener: RuleListenerKey; readonly rules: readonly RuleSpec[] }
  | { readonly kind: 'modifyRule'; readonly rule: RuleRef; readonly changes: RuleSettings }
  | ModifyDomainStep
  | CreateRewritesStep
  | { readonly kind: 'deleteRewrites'; readonly rewrites: readonly RewriteRef[] }
  | DeleteRulesStep;

/** A rule that is there. */
type RuleRef = { readonly listenerId: string; readonly ruleId: string; readonly key: RuleKey };

/** A redirect that is there. */
export type RewriteRef = Pick<Rewrite, 'sourceListenerId' | 'sourceRuleId' | 'targetListenerId' | 'targetRuleId'>;

/** Changes a domain of a listener: '' is the address of the load balancer. */
type ModifyDomainStep = {
  readonly kind: 'modifyDomain';
  readonly listener: RuleListenerKey;
  readonly domain: string;
  readonly changes: { readonly certificate?: ListenerCertificate; readonly isDefault?: true };
};

/** Makes redirects from rules of one listener to rules of one listener, with one code. */
type CreateRewritesStep = {
  readonly kind: 'createRewrites';
  readonly source: RuleListenerKey;
  readonly target: RuleListenerKey;
  readonly rewrites: readonly {
    readonly source: RuleKey;
    /** '': the address of the load balancer. */
    readonly sourceDomain: string;
    readonly target: RuleKey;
    readonly code: 301 | 302 | 307;
    /** Whether the path of the request is kept. */
    readonly takesUrl: boolean;
  }[];
};

/** Deletes rules of a listener with their targets. */
type DeleteRulesStep = {
  readonly kind: 'deleteRules';
  readonly listenerId: string;
  readonly ruleIds: readonly string[];
  /** The default domain afterwards, '' for the address of the load balancer; absent: it stays. */
  readonly newDefaultDomain?: string;
};
