#!/usr/bin/env python3
"""Makes files of many formats by real tools, and compares what the library `files` finds them to be with what libmagic does.

A program that is missing leaves its formats out. Both are held against the same expectation: the word of the format, and the media
types that libmagic has for it. Prints each miss and both rates; fails if that of the library is below --least.
"""

import argparse
import csv
import gzip
import io
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import wave
import zipfile
from pathlib import Path

made = []


def sample(name, word, *types):
    """Notes that a file has to be of a format. `word` may name several, with `|` between them."""
    def keep(make):
        try:
            make(Path(folder) / name)
        except Exception as error:  # pylint: disable=broad-except
            print(f"left out: {name}: {type(error).__name__}: {str(error)[:120]}")
            return make
        if (Path(folder) / name).exists():
            made.append((name, word.split("|"), types))
        return make
    return keep


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def pictures():
    from PIL import Image
    image = Image.radial_gradient("L").convert("RGB").resize((48, 32))
    for name, kind, word, types in [
            ("a.png", "PNG", "png", ["image/png"]), ("a.jpg", "JPEG", "jpeg", ["image/jpeg"]),
            ("a.gif", "GIF", "gif", ["image/gif"]), ("a.bmp", "BMP", "bmp", ["image/bmp", "image/x-ms-bmp"]),
            ("a.tiff", "TIFF", "tiff", ["image/tiff"]), ("a.webp", "WEBP", "webp", ["image/webp"]),
            ("a.ico", "ICO", "icon", ["image/vnd.microsoft.icon", "image/x-icon"]),
            ("a.jp2", "JPEG2000", "jpeg2000", ["image/jp2"]), ("a.avif", "AVIF", "avif", ["image/avif"]),
            ("a.dds", "DDS", "dds", ["image/vnd-ms.dds", "image/x-dds"]), ("a.pdf", "PDF", "pdf", ["application/pdf"]),
            ("a.eps", "EPS", "postscript", ["application/postscript", "image/x-eps"]),
            ("a.qoi", "QOI", "qoi", ["image/x-qoi"])]:
        sample(name, word, *types)(lambda path, kind=kind: image.save(path, kind))
    for name, word, types in [
            ("b.psd", "psd", ["image/vnd.adobe.photoshop"]), ("b.svg", "svg", ["image/svg+xml"]),
            ("b.xcf", "xcf", ["image/x-xcf"]), ("b.jxl", "jpeg_xl|jpegxl", ["image/jxl"]), ("b.heic", "heif", ["image/heic", "image/heif"]),
            ("b.exr", "exr", ["image/x-exr"]), ("b.emf", "emf", ["image/emf"]), ("b.djvu", "djvu", ["image/vnd.djvu"])]:
        sample(name, word, *types)(lambda path: run("convert", "-size", "32x32", "xc:red", path))


def documents():
    @sample("a.docx", "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
    def _(path):
        import docx
        document = docx.Document()
        document.add_paragraph("Hello")
        document.save(path)

    @sample("a.xlsx", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
    def _(path):
        import openpyxl
        openpyxl.Workbook().save(path)

    @sample("a.pptx", "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation")
    def _(path):
        import pptx
        pptx.Presentation().save(path)

    for name, module, kind in [("a.odt", "OpenDocumentText", "text"), ("a.ods", "OpenDocumentSpreadsheet", "spreadsheet"),
                               ("a.odp", "OpenDocumentPresentation", "presentation")]:
        @sample(name, "open_document", f"application/vnd.oasis.opendocument.{kind}")
        def _(path, module=module):
            import odf.opendocument
            getattr(odf.opendocument, module)().save(str(path))

    @sample("a.rtf", "rtf", "text/rtf")
    def _(path):
        path.write_text("{\\rtf1\\ansi\\deff0 {\\fonttbl {\\f0 Times;}}\\f0\\fs24 Hello\\par}")

    @sample("a.html", "html", "text/html")
    def _(path):
        path.write_text("<!DOCTYPE html>\n<html><head><title>A</title></head><body><p>Hello</p></body></html>\n")

    @sample("a.xml", "xml", "text/xml", "application/xml")
    def _(path):
        import xml.etree.ElementTree as tree
        tree.ElementTree(tree.Element("order", id="1")).write(path, xml_declaration=True, encoding="utf-8")

    @sample("a.json", "json", "application/json")
    def _(path):
        import json
        path.write_text(json.dumps({"a": [1, 2, {"b": None}]}, indent=1))

    @sample("a.csv", "text", "text/csv", "text/plain", "application/csv")
    def _(path):
        with path.open("w", newline="") as out:
            csv.writer(out).writerows([[number, number * 2, "text"] for number in range(20)])


def archives():
    (Path(folder) / "content.txt").write_text("hello\n" * 100)
    content = Path(folder) / "content.txt"

    @sample("a.zip", "zip", "application/zip")
    def _(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            out.write(content, "content.txt")

    for mode, name, word, types in [("w", "a.tar", "tar", ["application/x-tar"]), ("w:gz", "a.tgz", "gzip", ["application/gzip"]),
                                    ("w:bz2", "a.tbz", "bzip2", ["application/x-bzip2"]), ("w:xz", "a.txz", "xz", ["application/x-xz"])]:
        @sample(name, word, *types)
        def _(path, mode=mode):
            with tarfile.open(path, mode) as out:
                out.add(content, "content.txt")

    for tool, ending, word, types in [("zstd", "zst", "zstd", ["application/zstd"]), ("lz4", "lz4", "lz4", ["application/x-lz4"]),
                                      ("lzip", "lz", "lzip", ["application/lzip", "application/x-lzip"]),
                                      ("gzip", "gz", "gzip", ["application/gzip"])]:
        @sample(f"b.{ending}", word, *types)
        def _(path, tool=tool):
            with content.open("rb") as given, path.open("wb") as out:
                subprocess.run([tool, "-c"], stdin=given, stdout=out, check=True)

    @sample("a.lzma", "lzma", "application/x-lzma")
    def _(path):
        import lzma
        path.write_bytes(lzma.compress(b"hello" * 100, format=lzma.FORMAT_ALONE))

    @sample("a.7z", "sevenzip|7z|seven_zip", "application/x-7z-compressed")
    def _(path):
        import py7zr
        with py7zr.SevenZipFile(path, "w") as out:
            out.write(content, "content.txt")

    @sample("a.cpio", "cpio", "application/x-cpio")
    def _(path):
        with path.open("wb") as out:
            subprocess.run(["cpio", "-o", "-H", "newc"], input=b"content.txt\n", stdout=out, stderr=subprocess.DEVNULL, check=True, cwd=folder)

    @sample("a.iso", "iso", "application/x-iso9660-image")
    def _(path):
        import pycdlib
        iso = pycdlib.PyCdlib()
        iso.new()
        iso.add_fp(io.BytesIO(b"x"), 1, "/A.;1")
        iso.write(str(path))
        iso.close()


def programs():
    source = Path(folder) / "a.c"
    source.write_text("int main(void) { return 0; }\n")

    @sample("a.elf", "elf", "application/x-pie-executable", "application/x-executable", "application/x-sharedlib")
    def _(path):
        run("gcc", source, "-o", path)

    @sample("a.o", "elf", "application/x-object")
    def _(path):
        run("gcc", "-c", source, "-o", path)

    @sample("a.a", "ar", "application/x-archive")
    def _(path):
        run("ar", "rcs", path, Path(folder) / "a.o")

    @sample("A.class", "javaclass|java_class", "application/x-java-applet")
    def _(path):
        (Path(folder) / "A.java").write_text("class A {}")
        run("javac", "-d", folder, Path(folder) / "A.java")
        assert path.exists()

    @sample("a.jar", "jar", "application/java-archive")
    def _(path):
        run("jar", "cf", path, "-C", folder, "A.class")

    @sample("a.exe", "pe", "application/vnd.microsoft.portable-executable", "application/x-dosexec")
    def _(path):
        import setuptools
        shutil.copy(Path(setuptools.__file__).parent / "cli-64.exe", path)

    @sample("a.deb", "deb", "application/vnd.debian.binary-package")
    def _(path):
        root = Path(folder) / "deb" / "DEBIAN"
        root.mkdir(parents=True)
        (root / "control").write_text("Package: a\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: a\n")
        run("dpkg-deb", "--build", root.parent, path)

    @sample("a.wasm", "wasm", "application/wasm")
    def _(path):
        path.write_bytes(b"\0asm\1\0\0\0")

    @sample("a.sh", "shell", "text/x-shellscript")
    def _(path):
        path.write_text("#!/bin/sh\nset -e\necho hello\n")

    @sample("a.php", "php", "text/x-php")
    def _(path):
        path.write_text("<?php\necho 'hello';\n")


def others():
    @sample("a.wav", "wav", "audio/x-wav", "audio/wav")
    def _(path):
        with wave.open(str(path), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(bytes(1600))

    @sample("a.sqlite", "sqlite", "application/vnd.sqlite3", "application/x-sqlite3")
    def _(path):
        with sqlite3.connect(path) as database:
            database.execute("create table a (b)")

    @sample("a.mid", "midi", "audio/midi")
    def _(path):
        import mido
        file = mido.MidiFile()
        file.tracks.append(mido.MidiTrack([mido.Message("note_on", note=64)]))
        file.save(path)

    @sample("a.ttf", "truetype|true_type", "font/sfnt", "font/ttf")
    def _(path):
        from fontTools.fontBuilder import FontBuilder
        font = FontBuilder(1024, isTTF=True)
        font.setupGlyphOrder([".notdef"])
        font.setupCharacterMap({})
        from fontTools.pens.ttGlyphPen import TTGlyphPen
        font.setupGlyf({".notdef": TTGlyphPen(None).glyph()})
        font.setupHorizontalMetrics({".notdef": (600, 0)})
        font.setupHorizontalHeader()
        font.setupNameTable({"familyName": "A", "styleName": "Regular"})
        font.setupOS2()
        font.setupPost()
        font.save(path)

    @sample("a.woff", "woff", "font/woff", "application/font-woff")
    def _(path):
        from fontTools.ttLib import TTFont
        font = TTFont(Path(folder) / "a.ttf")
        font.flavor = "woff"
        font.save(path)

    @sample("a.py.gz", "gzip", "application/gzip")
    def _(path):
        with gzip.open(path, "wb") as out:
            out.write(b"print()\n")


def main():
    global folder
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--identify", required=True, help="the example `identify` of the library `files`")
    parser.add_argument("--out", required=True, help="the folder that the files are made in")
    parser.add_argument("--least", type=float, default=0.99, help="the least share that the library has to find")
    options = parser.parse_args()
    folder = options.out
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    for make in [pictures, documents, archives, programs, others]:
        make()
    names = [str(Path(folder) / name) for name, _, _ in made]
    ours = subprocess.run([options.identify, *names], check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = subprocess.run(["file", "--brief", "--mime-type", *names], check=True, capture_output=True, text=True).stdout.splitlines()
    right = [0, 0]
    for (name, words, types), own, other in zip(made, ours, theirs):
        own = own.split("\t")[1]
        fits = [own.lower() in words, other in types]
        right = [count + fit for count, fit in zip(right, fits)]
        if not all(fits):
            print(f"{name}: the library {own}{'' if fits[0] else ' (WRONG)'}, libmagic {other}{'' if fits[1] else ' (WRONG)'}")
    print(f"{len(made)} files: the library {right[0]} right ({right[0] / len(made):.1%}), libmagic {right[1]} ({right[1] / len(made):.1%})")
    return 0 if right[0] >= options.least * len(made) else 1


if __name__ == "__main__":
    sys.exit(main())
