//! The formats that are known: their families, and the extensions of their files.

use std::fmt;

/// The family of a format: what a policy may name in place of its formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Programs, installers and what a system starts on a double click.
    Executable,
    /// Source that a server, a shell or a browser runs, and office macros.
    Script,
    /// Pages that a browser runs scripts of.
    Html,
    /// SVG images without scripts.
    Svg,
    /// Images that cannot hold scripts.
    Image,
    /// Sound.
    Audio,
    /// Films.
    Video,
    /// Office documents, PDF, books.
    Document,
    /// Containers and compressed files.
    Archive,
    /// Fonts.
    Font,
    /// Text, JSON, XML.
    Text,
    /// Databases, and bytes of no known format.
    Data,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 12] = [
        Self::Executable,
        Self::Script,
        Self::Html,
        Self::Svg,
        Self::Image,
        Self::Audio,
        Self::Video,
        Self::Document,
        Self::Archive,
        Self::Font,
        Self::Text,
        Self::Data,
    ];

    /// The word of a policy for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::Script => "script",
            Self::Html => "html",
            Self::Svg => "svg",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
            Self::Archive => "archive",
            Self::Font => "font",
            Self::Text => "text",
            Self::Data => "data",
        }
    }
}

/// The name and the family of each format, and the extensions that its files have.
macro_rules! formats {
    ($($(#[$about:meta])* $variant:ident $name:literal $family:ident [$($extension:literal)*],)*) => {
        /// A format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Format {
            $(
                #[doc = concat!("`", $name, "`.")]
                $(#[$about])*
                $variant,
            )*
        }

        impl Format {
            /// Every format.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word of a policy for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its family.
            #[must_use]
            pub const fn family(self) -> Family {
                match self { $(Self::$variant => Family::$family,)* }
            }

            /// The extensions of its files, in lower case.
            #[must_use]
            pub const fn extensions(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($extension),*],)* }
            }
        }
    };
}

formats! {
    Pe "pe" Executable ["exe" "dll" "scr" "com" "cpl" "sys" "ocx" "drv" "efi" "mui" "pif"],
    Elf "elf" Executable ["so" "ko" "elf" "o" "axf" "appimage"],
    MachO "mach_o" Executable ["dylib" "bundle"],
    JavaClass "java_class" Executable ["class"],
    Jar "jar" Executable ["jar" "war" "ear"],
    Dex "dex" Executable ["dex"],
    Apk "apk" Executable ["apk" "xapk" "aab"],
    Wasm "wasm" Executable ["wasm"],
    Lnk "lnk" Executable ["lnk"],
    Msi "msi" Executable ["msi" "msp"],
    Chm "chm" Executable ["chm"],
    Deb "deb" Executable ["deb"],
    Rpm "rpm" Executable ["rpm"],
    Crx "crx" Executable ["crx"],
    Flash "flash" Executable ["swf"],
    Shell "shell" Script ["sh" "bash" "zsh" "py" "pl" "rb" "cgi" "command"],
    Php "php" Script ["php" "phtml" "phar" "php3" "php4" "php5" "php7" "php8" "pht" "phps" "inc"],
    Asp "asp" Script ["asp" "aspx" "ashx" "asmx" "ascx" "asa" "cer" "jsp" "jspx" "jspf" "erb" "ejs"],
    Batch "batch" Script ["bat" "cmd"],
    WindowsScript "windows_script" Script ["vbs" "vbe" "js" "jse" "wsf" "wsc" "sct" "hta"],
    PowerShell "powershell" Script ["ps1" "psm1" "psd1"],
    Registry "registry" Script ["reg"],
    /// A document with office macros.
    Macro "macro" Script ["docm" "dotm" "xlsm" "xltm" "xlam" "xlsb" "pptm" "potm" "ppsm" "ppam" "doc" "dot" "xls" "xlt" "ppt" "pps" "pot" "rtf" "odt" "ods" "odp"],
    /// SVG with scripts, or with references that load them.
    ActiveSvg "active_svg" Script ["svg" "svgz"],
    Html "html" Html ["html" "htm" "xhtml" "xht" "shtml" "mht" "mhtml"],
    Svg "svg" Svg ["svg" "svgz"],
    Png "png" Image ["png" "apng"],
    Jpeg "jpeg" Image ["jpg" "jpeg" "jpe" "jfif" "mpo"],
    Gif "gif" Image ["gif"],
    Webp "webp" Image ["webp"],
    Bmp "bmp" Image ["bmp" "dib"],
    Tiff "tiff" Image ["tif" "tiff" "dng" "nef" "cr2" "arw"],
    Icon "icon" Image ["ico" "cur"],
    Psd "psd" Image ["psd" "psb"],
    Heif "heif" Image ["heic" "heif" "hif"],
    Avif "avif" Image ["avif"],
    Jpeg2000 "jpeg2000" Image ["jp2" "j2k" "jpx" "jpf"],
    JpegXl "jpeg_xl" Image ["jxl"],
    Dds "dds" Image ["dds"],
    Exr "exr" Image ["exr"],
    Qoi "qoi" Image ["qoi"],
    Emf "emf" Image ["emf"],
    Wmf "wmf" Image ["wmf"],
    Xcf "xcf" Image ["xcf"],
    Mp3 "mp3" Audio ["mp3" "mp2" "mpga"],
    Wav "wav" Audio ["wav"],
    Flac "flac" Audio ["flac"],
    Ogg "ogg" Audio ["ogg" "oga" "ogv" "ogx" "opus" "spx"],
    Aac "aac" Audio ["aac"],
    M4a "m4a" Audio ["m4a" "m4b" "mp4"],
    Aiff "aiff" Audio ["aif" "aiff" "aifc"],
    Amr "amr" Audio ["amr"],
    Midi "midi" Audio ["mid" "midi"],
    Mp4 "mp4" Video ["mp4" "m4v" "mov" "qt" "3gp" "3g2" "m4a"],
    Matroska "matroska" Video ["mkv" "webm" "mka" "weba" "mk3d"],
    Avi "avi" Video ["avi"],
    Flv "flv" Video ["flv"],
    Mpeg "mpeg" Video ["mpg" "mpeg" "vob" "m2v"],
    Asf "asf" Video ["wmv" "wma" "asf"],
    Pdf "pdf" Document ["pdf" "ai"],
    /// PDF with scripts or actions that start programs, where they are not compressed.
    ActivePdf "active_pdf" Document ["pdf" "ai"],
    PostScript "postscript" Document ["ps" "eps" "ai"],
    Rtf "rtf" Document ["rtf" "doc"],
    /// Office documents of before 2007, and mails of Outlook.
    Ole "ole" Document ["doc" "dot" "xls" "xlt" "ppt" "pps" "pot" "vsd" "pub" "msg" "mpp" "hwp" "wps"],
    Docx "docx" Document ["docx" "dotx" "docm" "dotm"],
    Xlsx "xlsx" Document ["xlsx" "xltx" "xlsm" "xltm" "xlam" "xlsb"],
    Pptx "pptx" Document ["pptx" "potx" "ppsx" "sldx" "thmx" "pptm" "potm" "ppsm" "ppam"],
    Visio "visio" Document ["vsdx" "vstx"],
    Xps "xps" Document ["xps" "oxps"],
    OpenDocument "open_document" Document ["odt" "ods" "odp" "odg" "odf" "odb" "odc" "ott" "ots" "otp" "otg"],
    Epub "epub" Document ["epub"],
    DjVu "djvu" Document ["djvu" "djv"],
    Zip "zip" Archive ["zip" "kmz" "cbz" "whl" "nupkg" "vsix" "xpi" "ipa" "usdz" "3mf" "pages" "numbers" "key" "sketch"],
    Gzip "gzip" Archive ["gz" "tgz" "svgz" "gzip" "emz" "wmz"],
    Bzip2 "bzip2" Archive ["bz2" "tbz" "tbz2"],
    Xz "xz" Archive ["xz" "txz"],
    Zstd "zstd" Archive ["zst" "tzst" "zstd"],
    SevenZip "7z" Archive ["7z" "cb7"],
    Rar "rar" Archive ["rar" "cbr"],
    Tar "tar" Archive ["tar" "cbt" "ova"],
    Lzip "lzip" Archive ["lz" "tlz"],
    Lz4 "lz4" Archive ["lz4"],
    Lzma "lzma" Archive ["lzma"],
    Cab "cab" Archive ["cab"],
    Compress "compress" Archive ["z"],
    Arj "arj" Archive ["arj"],
    Lha "lha" Archive ["lha" "lzh"],
    Cpio "cpio" Archive ["cpio"],
    Ar "ar" Archive ["a" "ar" "lib"],
    Iso "iso" Archive ["iso" "img"],
    Ace "ace" Archive ["ace"],
    TrueType "truetype" Font ["ttf" "ttc" "otf"],
    Woff "woff" Font ["woff" "woff2"],
    Xml "xml" Text ["xml" "xsd" "xsl" "xslt" "rss" "atom" "kml" "gpx" "plist" "xmp" "xliff" "musicxml" "dae" "rdf" "wsdl" "tei" "csproj" "doc" "xls" "vdx" "fodt" "fods" "fodp"],
    Json "json" Text ["json" "geojson" "ndjson" "jsonl" "ipynb" "har" "map" "webmanifest"],
    Text "text" Text ["txt" "csv" "tsv" "md" "log" "ini" "yml" "yaml" "ics" "vcf" "eml" "tex" "srt" "vtt" "sql" "conf" "cfg" "properties" "pem" "crt" "csr" "key" "css" "toml" "rst" "po"],
    Sqlite "sqlite" Data ["sqlite" "sqlite3"],
    Parquet "parquet" Data ["parquet"],
    Pcap "pcap" Data ["pcap" "pcapng" "cap"],
    Empty "empty" Data [],
    Unknown "unknown" Data [],
}

impl Format {
    /// The formats that a file of this extension may have; none where the extension says nothing.
    pub fn of_extension(extension: &str) -> impl Iterator<Item = Self> + '_ {
        Self::ALL.iter().copied().filter(move |format| format.extensions().contains(&extension))
    }

    /// Whether files of the format are text: bytes that are text may have any of these extensions.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self.family(), Family::Text | Family::Script | Family::Html | Family::Svg)
    }

    /// Whether its files always begin with a signature that is known: bytes without one are not of the format.
    #[must_use]
    pub(crate) const fn has_signature(self) -> bool {
        use Format::{
            Avif, Bmp, Bzip2, Emf, Flac, Gif, Gzip, Heif, Icon, Jpeg, Matroska, Midi, Ogg, Ole, Pdf, Png, Psd, Rar,
            Rtf, SevenZip, Sqlite, Tiff, Wav, Webp, Woff, Xz, Zstd,
        };
        let binary = matches!(
            self,
            Avif | Bmp
                | Bzip2
                | Emf
                | Flac
                | Gif
                | Gzip
                | Heif
                | Icon
                | Jpeg
                | Matroska
                | Midi
                | Ogg
                | Ole
                | Pdf
                | Png
                | Psd
                | Rar
        );
        binary || matches!(self, Rtf | SevenZip | Sqlite | Tiff | Wav | Webp | Woff | Xz | Zstd) || self.is_zip()
    }

    /// Whether it is a ZIP file, whatever it is called.
    #[must_use]
    pub const fn is_zip(self) -> bool {
        matches!(
            self,
            Self::Zip
                | Self::Jar
                | Self::Apk
                | Self::Docx
                | Self::Xlsx
                | Self::Pptx
                | Self::Visio
                | Self::Xps
                | Self::OpenDocument
                | Self::Epub
        )
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whether a word is that of a format or a family.
#[must_use]
pub fn is_type_word(word: &str) -> bool {
    type_words().any(|known| known == word)
}

/// The words of all families and formats.
pub fn type_words() -> impl Iterator<Item = &'static str> {
    Family::ALL.into_iter().map(Family::word).chain(Format::ALL.iter().map(|format| format.word()))
}
