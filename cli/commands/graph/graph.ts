import type { ElementId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';

/** A node as a drawing: boxes, edges, and the paths of its Pods. Plain data, printed by `-o json`. */
export type Graph = {
  /** 'Node 10.0.0.4'; 'This node' where the agent left no record. */
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

/** A band of the drawing: what all Pods share, an ENI with its Pods, or Pods without a known shared ENI. */
export type GraphGroup = {
  readonly id: string;
  readonly kind: 'node' | 'eni' | 'other';
  readonly title: string;
  readonly subtitle: string;
};

/** State of an element. missing: it should exist and does not. */
export type GraphState = 'ok' | 'warning' | 'broken' | 'missing' | 'unknown';

/** One box of the drawing. */
export type GraphNode = {
  /** An ElementId, followed by `~<group>` where several boxes stand for one element. */
  readonly id: string;
  readonly kind: 'pod' | 'veth' | 'settings' | 'mark' | 'rule' | 'table' | 'eni' | 'nic' | 'gateway';
  readonly lane: GraphLane;
  readonly group: string;
  readonly title: string;
  /** A few short lines below the title. */
  readonly lines: readonly string[];
  readonly owner: 'ours' | 'kernel' | 'foreign';
  readonly state: GraphState;
  /** The elements that the box stands for: paths and findings name these. */
  readonly elements: readonly ElementId[];
  /** Details, shown when the box is opened. */
  readonly facts: readonly GraphFact[];
  /** Indexes into the graph's findings. */
  readonly findings: readonly number[];
  /** Only of a veth: the box of its Pod. */
  readonly podNode?: string;
};

/** A heading with lines below it. */
export type GraphFact = { readonly title: string; readonly rows: readonly string[] };

/** A connection from one box, or from all Pods of a group, to another box. */
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
  /** Kind of the hop, as in explain: 'pod', 'veth', 'rule', 'sysctl'… */
  readonly kind: string;
  /** Id of the box of this hop; undefined where there is none. */
  readonly node: string | undefined;
  readonly title: string;
  readonly details: readonly string[];
  readonly verdict: 'ok' | 'broken' | 'warning' | 'unknown';
  /** Index into the graph's findings. */
  readonly finding?: number;
};

/** Id of the band with everything that all Pods share. */
export const NODE_GROUP = 'node';

/** Returns the id that stands for all Pods of a group as the end of an edge. */
export function groupEnd(group: string): string {
  return `group:${group}`;
}
