/** A rule of a security group for what comes in; the first that fits decides, and what none fits is dropped. */
export type SecurityRule = {
  readonly cidr: string;
  /** Undefined: both. */
  readonly protocol?: 'TCP' | 'UDP';
  /** Undefined: all. */
  readonly port?: number;
  readonly isAccepted: boolean;
};

const OPEN: SecurityRule = { cidr: '0.0.0.0/0', isAccepted: true };

/** The rules of security groups. A group whose rules were never set admits everyone. */
export class SecurityGroupBook {
  readonly #rules = new Map<string, readonly SecurityRule[]>();

  /** Whether no rule was ever set, so that every group admits everyone. */
  get isOpen(): boolean {
    return this.#rules.size === 0;
  }

  /** Sets the rules of a group. */
  set(groupId: string, rules: readonly SecurityRule[]): void {
    this.#rules.set(groupId, rules);
  }

  /** The rules of groups, in the order of precedence. */
  rulesOf(groupIds: readonly string[]): readonly SecurityRule[] {
    return groupIds.flatMap((id) => this.#rules.get(id) ?? [OPEN]);
  }

  /** As `rulesOf`, where one of the groups is closed to somebody; undefined: everyone is admitted. */
  admissionOf(groupIds: readonly string[]): readonly SecurityRule[] | undefined {
    return groupIds.some((id) => this.#rules.has(id)) ? this.rulesOf(groupIds) : undefined;
  }
}
