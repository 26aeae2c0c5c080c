import type { Finding } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';

/** A node as a drawing has it: what there is, what leads where, and the paths of its Pods. Plain data, printed by `-o json`. */
export type Graph = {
  /** 'Node 10.0.0.4', or the release's name for a node whose agent left no record. */
  readonly title: string;
  /** 'compact mode · 2 ENIs · 25 Pods'. */
  readonly subtitle: string;
  readonly groups: readonly GraphGroup[];
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly paths: readonly GraphPath[];
  readonly findings: readonly Finding[];
  /** What could not be read. */
  readonly unknowns: readonly { readonly what: string; readonly why: string; readonly next: string }[];
};

/** Columns of the drawing, from the Pods to the VPC. */
export const LANES = ['pods', 'marks', 'rules', 'tables', 'links', 'vpc'] as const;

/** One of the columns. */
export type GraphLane = (typeof LANES)[number];

/** A band of the drawing: what all share, an ENI with its Pods, or Pods that no ENI claims. */
export type GraphGroup = {
  readonly id: string;
  readonly kind: 'node' | 'eni' | 'other';
  readonly title: string;
  readonly subtitle: string;
};

/** How well a thing is. missing: it should be there and is not. */
export type GraphState = 'ok' | 'warning' | 'broken' | 'missing' | 'unknown';

/** One box. */
export type GraphNode = {
  /** An ElementId, or one with `@<group>` behind it where several boxes stand for one element. */
  readonly id: string;
  readonly kind: 'pod' | 'veth' | 'settings' | 'mark' | 'rule' | 'table' | 'eni' | 'nic' | 'gateway';
  readonly lane: GraphLane;
  readonly group: string;
  readonly title: string;
  /** A few short lines below the title. */
  readonly lines: readonly string[];
  readonly owner: 'ours' | 'kernel' | 'foreign';
  readonly state: GraphState;
  /** What it stands for: paths and findings name these. */
  readonly elements: readonly ElementId[];
  /** For who opens it. */
  readonly facts: readonly GraphFact[];
  /** Indexes into the graph's findings. */
  readonly findings: readonly number[];
  /** Of a veth: the Pod's box that it is the other end of. */
  readonly podNode?: string;
};

/** A heading with lines below it. */
export type GraphFact = { readonly title: string; readonly rows: readonly string[] };

/** What leads from one box, or from all Pods of a group, to another box. */
export type GraphEdge = {
  /** Id of a node, or `group:<id>` for all Pods of a group. */
  readonly from: string;
  readonly to: string;
  readonly kind: 'veth' | 'mark' | 'lookup' | 'route' | 'wire';
};

/** One direction of one conversation of a Pod. */
export type GraphPath = {
  /** Id of the Pod's box. */
  readonly pod: string;
  readonly direction: 'from-pod' | 'to-pod';
  readonly from: string;
  readonly to: string;
  readonly steps: readonly GraphStep[];
};

/** One hop of a path. */
export type GraphStep = {
  /** What it is, as explain calls it: 'pod', 'veth', 'rule', 'sysctl'… */
  readonly kind: string;
  /** Box that stands for it; undefined where none does. */
  readonly node: string | undefined;
  readonly title: string;
  readonly details: readonly string[];
  readonly verdict: 'ok' | 'broken' | 'warning' | 'unknown';
  /** Index into the graph's findings. */
  readonly finding?: number;
};

/** The band of what all Pods share. */
export const NODE_GROUP = 'node';

/** Names all Pods of a group as the end of an edge. */
export function groupEnd(group: string): string {
  return `group:${group}`;
}
