import { encodeInstruction, INSTRUCTION_BYTES, type Instruction, slotsOf } from './instruction.ts';

/** One line of a program's source: an instruction whose jumps and maps have names, or the name of a place. */
export type SourceLine = Instruction<string> | { readonly kind: 'label'; readonly name: string };

/**
 * Puts places and maps into a program and encodes it.
 * @param maps Descriptors by the names of the source
 * @throws RangeError for a name that is not there or is there twice, a jump that is too long
 */
export function assemble(source: readonly SourceLine[], maps: Readonly<Record<string, number>>): Uint8Array {
  const places = placesOf(source);
  const bytes: Uint8Array[] = [];
  let at = 0;
  for (const line of source) {
    if (line.kind === 'label') continue;
    at += slotsOf(line);
    bytes.push(encodeInstruction(resolve(line, at, places, maps)));
  }
  const joined = new Uint8Array(at * INSTRUCTION_BYTES);
  let offset = 0;
  for (const part of bytes) {
    joined.set(part, offset);
    offset += part.byteLength;
  }
  return joined;
}

function placesOf(source: readonly SourceLine[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  let at = 0;
  for (const line of source) {
    if (line.kind !== 'label') {
      at += slotsOf(line);
      continue;
    }
    if (places.has(line.name)) throw new RangeError(`bpf: the label ${line.name} is there twice`);
    places.set(line.name, at);
  }
  return places;
}

/** @param next Place after this instruction, from which jumps count */
function resolve(
  line: Instruction<string>,
  next: number,
  places: ReadonlyMap<string, number>,
  maps: Readonly<Record<string, number>>,
): Instruction {
  if (line.kind === 'jump') {
    const place = places.get(line.target);
    if (place === undefined) throw new RangeError(`bpf: no label ${line.target}`);
    return { ...line, target: place - next };
  }
  if (line.kind !== 'map') return line;
  const map = maps[line.map];
  if (map === undefined) throw new RangeError(`bpf: no map ${line.map}`);
  return { ...line, map };
}
