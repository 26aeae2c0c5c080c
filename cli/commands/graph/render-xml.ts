import { showByteText } from '../../../runtime/byte-text.ts';

/**
 * Escapes a text for XML and HTML, in elements and in quoted attributes. Characters that XML cannot contain, that a
 * terminal would interpret, or that change the text direction become replacement characters.
 */
export function escapeXml(text: string): string {
  return showByteText(text)
    .replace(NO_XML, '\ufffd')
    .replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Renders an element; `content` is already markup, attributes are escaped here. Numbers are rounded to a tenth. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  content = '',
): string {
  const pairs = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [` ${key}="${escapeXml(typeof value === 'number' ? String(Math.round(value * 10) / 10) : value)}"`],
  );
  return content === '' ? `<${name}${pairs.join('')}/>` : `<${name}${pairs.join('')}>${content}</${name}>`;
}

// Everything that is not in Char, and of Char the C1 controls and marks of text direction. @see XML 1.0, production 2
const NO_XML =
  /[^\t\n\u{20}-\u{7e}\u{a0}-\u{2027}\u{202f}-\u{2065}\u{206a}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;
