import { plainLines } from '../../runtime/plain-text.ts';
import type { Stream } from '../command/command.ts';
import { renderJson } from './render-json.ts';

/**
 * Prints a value as one JSON or YAML document. The YAML library is loaded only when it is needed; JSON is printed
 * before this function returns.
 */
export async function printDocument(value: unknown, format: 'json' | 'yaml', stdout: Stream): Promise<void> {
  if (format === 'json') return stdout.write(renderJson(value, stdout.isTerminal));
  const { renderYaml } = await import('./render-yaml.ts');
  const text = renderYaml(value);
  // The library escapes fewer characters than a terminal requires.
  stdout.write(stdout.isTerminal ? plainLines(text) : text);
}
