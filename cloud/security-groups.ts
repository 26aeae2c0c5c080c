import type { CallContext, IngressRule, Tags } from './cloud.ts';

/** A security group. */
export type SecurityGroup = {
  readonly securityGroupId: string;
  readonly name: string;
  readonly tags: Tags;
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
};

/** A new security group. */
export type SecurityGroupSpec = {
  /** 1 to 60 characters; another one may have the same. */
  readonly name: string;
  /** At most 100 characters. */
  readonly description: string;
  /** The group has them from its first moment. */
  readonly tags: Tags;
};

/** The policies of a security group for what comes in. */
type GroupPolicies = {
  /** Counts the changes of the policies. */
  readonly version: string;
  readonly rules: readonly IngressRule[];
};

/** The security groups that a query selects. */
type SecurityGroupSweep = {
  readonly groups: readonly SecurityGroup[];
  /** False when the number changed between pages, each time: one that is not listed may exist all the same. */
  readonly isConsistent: boolean;
};

/**
 * Security groups themselves. A change is done when the promise resolves. The API has no ClientToken: when a creation fails
 * with `resolve`, look for the group by its tags.
 * @see https://www.tencentcloud.com/document/product/215/15806 CreateSecurityGroup, and its siblings
 */
export type GroupPort = {
  /** Creates a security group without policies, which admits no connection. @throws CloudError `quota` with scope `security-groups` */
  create(spec: SecurityGroupSpec, context: CallContext): Promise<string>;
  /** Reads all security groups that carry a tag with a value. */
  find(tag: { readonly key: string; readonly value: string }, context: CallContext): Promise<SecurityGroupSweep>;
  /** @throws CloudError `gone` when there is no such group */
  policies(securityGroupId: string, context: CallContext): Promise<GroupPolicies>;
  /**
   * Replaces all policies in one step; what goes out is admitted. Each rule has a network and a protocol.
   * @param version of the policies that are replaced
   * @throws CloudError `resolve` when others have changed them since; `quota` with scope `security-group-policies`
   */
  replacePolicies(
    securityGroupId: string,
    rules: readonly IngressRule[],
    version: string,
    context: CallContext,
  ): Promise<void>;
  /** Deletes a group. @throws CloudError `gone`; `never` with code ResourceInUse while something is in it */
  delete(securityGroupId: string, context: CallContext): Promise<void>;
};
