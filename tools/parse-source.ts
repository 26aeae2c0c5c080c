import { stripTypeScriptTypes } from 'node:module';
import { type Node, parse } from 'acorn';
import { full } from 'acorn-walk';

/** A node of a syntax tree, with its fields. */
export type SyntaxNode = Node & { readonly [field: string]: unknown };

/**
 * Parses a source file without its types and comments, and returns all nodes of its tree, the inner ones first. Lines
 * (`loc`) are those of the file. Pure.
 * @throws SyntaxError
 */
export function syntaxNodes(text: string): readonly SyntaxNode[] {
  const nodes: SyntaxNode[] = [];
  // Types become spaces, so positions stay.
  const tree = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module', locations: true });
  // acorn's own type has no fields; each kind of node has others.
  full(tree, (node) => nodes.push(node as SyntaxNode));
  return nodes;
}
