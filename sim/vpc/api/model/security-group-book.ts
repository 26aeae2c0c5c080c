import { ApiError } from './api-error.ts';
import { VersionLog } from './version-log.ts';

/** A rule of a security group for what comes in; the first that fits decides, and what none fits is dropped. */
export type SecurityRule = {
  readonly cidr: string;
  /** Undefined: both. */
  readonly protocol?: 'TCP' | 'UDP';
  /** Undefined: all. */
  readonly port?: number;
  /** Last port of a range that begins with `port`; undefined: that port alone. */
  readonly lastPort?: number;
  readonly isAccepted: boolean;
};

/** A security group that was made by the API. */
export type ModelSecurityGroup = {
  readonly groupId: string;
  readonly name: string;
  readonly description: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
};

const OPEN: SecurityRule = { cidr: '0.0.0.0/0', isAccepted: true };

/** Security groups and their rules. A group that was there from the beginning, and whose rules were never set, admits everyone. */
export class SecurityGroupBook {
  readonly #rules = new Map<string, readonly SecurityRule[]>();
  readonly #versions = new Map<string, number>();
  readonly #made = new Map<string, ModelSecurityGroup>();
  readonly #deleted = new Set<string>();
  readonly #past = new VersionLog<ModelSecurityGroup>();
  /** Those that were there from the beginning; undefined: any. */
  readonly #first: readonly string[] | undefined;

  constructor(first: readonly string[] | undefined) {
    this.#first = first;
  }

  /** Whether no rule was ever set, so that every group admits everyone. */
  get isOpen(): boolean {
    return this.#rules.size === 0;
  }

  /** Groups that were made, by id. */
  get made(): ReadonlyMap<string, ModelSecurityGroup> {
    return this.#made;
  }

  /** Those that had been made at some moment of the last minute. */
  madeAsOf(atMs: number): ReadonlyMap<string, ModelSecurityGroup> {
    return this.#past.asOf(atMs);
  }

  /** Enters a new group, which admits nobody. */
  make(group: ModelSecurityGroup): void {
    this.#made.set(group.groupId, group);
    this.#past.note(group.groupId, group.createdAtMs, group);
    this.#rules.set(group.groupId, []);
  }

  /** Strikes out a group that was made. */
  remove(groupId: string, atMs: number): void {
    this.#made.delete(groupId);
    this.#rules.delete(groupId);
    this.#deleted.add(groupId);
    this.#past.note(groupId, atMs, undefined);
  }

  /** The groups, when all of them exist. @throws ApiError ResourceNotFound */
  known(groupIds: readonly string[]): readonly string[] {
    const unknown = groupIds.find(
      (id) => !this.#made.has(id) && (this.#deleted.has(id) || this.#first?.includes(id) === false),
    );
    if (unknown !== undefined) throw new ApiError('ResourceNotFound', `The resource ${unknown} does not exist.`);
    return groupIds;
  }

  /** Sets the rules of a group. */
  set(groupId: string, rules: readonly SecurityRule[]): void {
    this.#rules.set(groupId, rules);
    this.#versions.set(groupId, this.versionOf(groupId) + 1);
  }

  /** Counts how often the rules of a group were set. */
  versionOf(groupId: string): number {
    return this.#versions.get(groupId) ?? 0;
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
