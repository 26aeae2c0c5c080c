import type { CallContext } from './cloud.ts';
import type { LoadBalancerTask } from './load-balancers.ts';

/** Most redirects of one change. */
export const REWRITES_PER_CHANGE = 50;

/** A redirect: requests of a rule are answered with the place of another rule of the same load balancer. */
export type Rewrite = {
  readonly sourceListenerId: string;
  readonly sourceRuleId: string;
  readonly targetListenerId: string;
  readonly targetRuleId: string;
  /** Status of the answer; absent: the cloud does not report it. */
  readonly code?: number;
  /** Whether the path of the request is kept; otherwise that of the target rule is taken. */
  readonly takesUrl: boolean;
  /** Whether AutoRewrite made it: the cloud made its source rule too. */
  readonly isAutomatic: boolean;
};

/** New redirects from rules of one listener to rules of one listener. */
type RewriteSpec = {
  readonly sourceListenerId: string;
  readonly targetListenerId: string;
  /** 1 to `REWRITES_PER_CHANGE`. */
  readonly rewrites: readonly {
    readonly sourceRuleId: string;
    /** The domain of the source rule: the API wants it with a code. Never '': name the address of the load balancer. */
    readonly sourceDomain: string;
    readonly targetRuleId: string;
    readonly code: 301 | 302 | 307;
    readonly takesUrl: boolean;
  }[];
};

/**
 * Redirects between rules. A rule is the source of one redirect at most, and none is both source and target. Changes are as
 * those of `LoadBalancerPort`, and settled there.
 * @see https://www.tencentcloud.com/document/product/214/30678 ManualRewrite, and its siblings
 */
export type RewritePort = {
  /** Returns all redirects of a load balancer, of others too. */
  list(loadBalancerId: string, context: CallContext): Promise<readonly Rewrite[]>;
  /** Creates redirects, all or none. @throws CloudError `gone` when a listener or rule does not exist */
  create(loadBalancerId: string, spec: RewriteSpec, context: CallContext): Promise<LoadBalancerTask>;
  /**
   * Deletes 1 to `REWRITES_PER_CHANGE` redirects between the same two listeners, all or none; the rules stay. @throws
   * CloudError `gone` when one does not exist
   */
  delete(
    loadBalancerId: string,
    rewrites: readonly Pick<Rewrite, 'sourceListenerId' | 'sourceRuleId' | 'targetListenerId' | 'targetRuleId'>[],
    context: CallContext,
  ): Promise<LoadBalancerTask>;
};
